"""Reports: what executables say of their kernels, memory and compilation, on every platform."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.runtime.arrays.devices import default_device_now
from polyax.runtime.contract.backend import CompileOptions
from polyax.runtime.contract.listing import flatten
from polyax.runtime.contract.report import Decision, KernelReport, Report

ROWS = jax.ShapeDtypeStruct((8, 16), "float32")
WEIGHTS = jax.ShapeDtypeStruct((16, 4), "float32")


def network(x: Any, w: Any) -> Any:
    return jax.nn.softmax(jnp.tanh(x @ w), axis=-1)


def report_of(fun: Any, *args: Any, **options: Any) -> Report:
    device = default_device_now()
    closed = jax.make_jaxpr(fun)(*args)
    return device.backend.compile(closed, CompileOptions(device, **options)).report()


@pytest.mark.sample
def test_every_equation_is_in_a_kernel(platform: str) -> None:
    report = report_of(network, ROWS, WEIGHTS, stages=True)
    assert report.program is not None
    names = [line.eqn.primitive.name for line in report.program.lines]
    computed = {e for k in report.kernels for e in k.equations}
    assert {names[e] for e in computed} >= {"dot_general", "tanh", "exp", "reduce_sum", "div"}
    for k in report.kernels:
        assert set(k.primitives) >= {names[e] for e in k.equations}


@pytest.mark.sample
def test_bytes_and_operations_add_up(platform: str) -> None:
    report = report_of(network, ROWS, WEIGHTS)
    assert report.bytes_moved == sum(k.bytes_moved for k in report.kernels) > 0
    assert report.bytes_moved <= report.bytes_unfused
    assert report.flops >= 2 * 8 * 16 * 4


@pytest.mark.sample
def test_buffers_are_those_of_the_program(platform: str) -> None:
    found = Counter((b.role, str(b.aval)) for b in report_of(network, ROWS, WEIGHTS).buffers if b.aval is not None)
    assert found == {("input", "float32[8,16]"): 1, ("input", "float32[16,4]"): 1, ("result", "float32[8,4]"): 1}


@pytest.mark.sample
def test_phases_make_up_the_compile_time(platform: str) -> None:
    report = report_of(network, ROWS, WEIGHTS)
    assert report.phases and sum(report.phases.values()) == pytest.approx(report.compile_seconds)


def test_a_product_is_a_library_call_or_a_kernel_with_its_work() -> None:
    (call,) = (k for k in report_of(network, ROWS, WEIGHTS).kernels if "dot_general" in k.primitives)
    assert call.flops >= 2 * 8 * 16 * 4 and call.outputs[0].shape == (8, 4)


def test_donated_inputs_are_named() -> None:
    report = report_of(lambda x: x + 1, ROWS, donated=(True,))
    notes = {b.role: b.note for b in report.buffers}
    assert notes["input"] == "donated, reused" and notes["result"] == "in a donated input"


def test_stages_are_kept_only_if_asked_for() -> None:
    quiet, told = report_of(network, ROWS, WEIGHTS), report_of(network, ROWS, WEIGHTS, stages=True)
    assert not quiet.stages and quiet.program is None
    names = [s.name for s in told.stages]
    assert names[0] == "lower" and names[-2:] == ["plan", "canonical kernels"] and "instruction" in names
    assert "exp(" in told.stages[0].text and "call dot_general" in told.stages[0].text


def test_the_reference_backend_lists_equations() -> None:
    with jax.default_device("reference"):
        report = report_of(jax.jit(network), ROWS, WEIGHTS)
    assert report.program is not None and len(report.kernels) == len(report.program.lines)
    assert all(k.kind == "call" and k.equations == (n,) for n, k in enumerate(report.kernels))
    assert report.bytes_moved == report.bytes_unfused


def test_flattened_programs_open_calls() -> None:
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    closed = jax.make_jaxpr(lambda x: inner(inner(x)) + 1)(1.0)
    program = flatten(closed.jaxpr, lambda eqn: eqn.params.get("jaxpr"))
    assert [line.eqn.primitive.name for line in program.lines] == ["sin", "mul", "sin", "mul", "add"]
    made = {v: n for n, line in enumerate(program.lines) for v in line.outs}
    assert [made.get(line.inputs[0], -1) for line in program.lines] == [-1, 0, 1, 2, 3]
    assert made[program.outputs[0]] == 4


def test_primitives_are_counted() -> None:
    assert KernelReport("k", ("mul", "sin", "mul"), 0, 0).fused == "mul×2 sin"


def test_refusals_are_grouped_by_reason() -> None:
    decisions = [Decision("f", p, "c", reason) for p, reason in (("a", "x"), ("b", "y"), ("c", "y"), ("d", None))]
    refusals = Report("toy", decisions=decisions).refusals
    assert list(refusals) == ["y", "x"] and len(refusals["y"]) == 2


def test_reasons_that_differ_in_numbers_are_one() -> None:
    decisions = [Decision("f", "a", "b", f"{n} bytes instead of 7") for n in (12, 345)]
    assert list(Report("toy", decisions=decisions).refusals) == ["N bytes instead of N"]
    assert list(Report("toy", decisions=decisions[:1]).refusals) == ["12 bytes instead of 7"]
