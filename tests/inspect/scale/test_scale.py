"""Predictions for many devices: what programs exchange, what that costs, and the command that shows it."""

from __future__ import annotations

import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyax
from polyax import NamedSharding, P, ShapeDtypeStruct, lax
from polyax.__main__ import main
from polyax.control.spmd import axes_bound
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.runtime.contract.hooks import Command, hookimpl
from polyax.runtime.plugins.registry import registry
from polyax.sharding import AbstractMesh
from polyax_inspect.scale.command import growing
from polyax_inspect.scale.exchanges import Exchange, exchanges, seconds, sent
from polyax_inspect.scale.machine import Connection, Machine, link, measured, quantity
from polyax_inspect.scale.prediction import predict

SIZES = {"x": 4, "y": 2}
MACHINE = Machine(1e12, 1e11, link=Connection(1e9, 1e-6), links={"y": Connection(1e8, 1e-5)})


def traced(fun, *shapes) -> ClosedJaxpr:
    with axes_bound(tuple(SIZES.items())):
        return polyax.make_jaxpr(fun)(*(ShapeDtypeStruct(s, np.float32) for s in shapes))


def found(fun, *shapes) -> list[Exchange]:
    return list(exchanges(traced(fun, *shapes)))


def test_collectives_are_found() -> None:
    assert found(lambda a: lax.psum(a, "x"), (8,)) == [Exchange("all-reduce", ("x",), 32)]
    assert found(lambda a: lax.all_gather(a, "y") + lax.axis_index("x"), (8,)) == [Exchange("all-gather", ("y",), 32)]
    assert found(lambda a: a + 1, (8,)) == []


def test_loops_count_as_often_as_they_run() -> None:
    def loop(a):
        return lax.scan(lambda c, _: (lax.psum(polyax.jit(lambda v: v * 2)(c), "x"), None), a, None, 10)[0]

    assert found(loop, (8,)) == [Exchange("all-reduce", ("x",), 32, 10)]


def test_of_branches_the_one_that_sends_most_counts() -> None:
    def branches(a):
        return lax.cond(a[0] > 0, lambda v: lax.psum(v, "x"), lambda v: v, a)

    assert [e.kind for e in found(branches, (8,))] == ["all-reduce"]


@pytest.mark.parametrize(
    ("kind", "nbytes", "expected", "along"),
    [
        ("all-reduce", 8, 2 * (1e-6 + 8e-9), 16),  # a tree, as the message is short
        ("all-reduce", 10**9, 4e-6 + 1.5, 1.5e9),  # each reduces a part for all
        ("all-gather", 10**6, 2e-6 + 3e-3, 3e6),
        ("reduce-scatter", 10**6, 2e-6 + 0.75e-3, 0.75e6),
        ("all-to-all", 10**9, 3e-6 + 0.75, 0.75e9),
        ("permutation", 10**6, 1e-6 + 1e-3, 1e6),
    ],
)
def test_what_four_devices_take(kind: str, nbytes: int, expected: float, along: float) -> None:
    e = Exchange(kind, ("x",), nbytes, 3)
    assert seconds(e, MACHINE, SIZES) == pytest.approx(3 * expected)
    assert sent(e, MACHINE, SIZES) == pytest.approx({"x": 3 * along})


def test_the_slow_axis_carries_what_the_fast_one_left() -> None:
    along = sent(Exchange("all-reduce", ("x", "y"), 4 * 10**9), MACHINE, SIZES)
    assert along == pytest.approx({"x": 6e9, "y": 1e9})
    assert sent(Exchange("all-reduce", ("x",), 8), MACHINE, {"x": 1}) == {}, "alone, nobody sends"


def test_descriptions_of_machines() -> None:
    assert quantity("312T") == 312e12 and quantity("2TB/s") == 2e12 and quantity("0.5") == 0.5
    assert link("1GB/s") == (None, Connection(1e9, 0.0)) and link("data=1GB/s:500ns")[1].latency == pytest.approx(5e-7)
    for text in ("fast", "1GB/s:2", "=:"):
        with pytest.raises(ValueError, match="expected"):
            link(text)


def test_the_machine_here_is_measured() -> None:
    here = measured()
    assert here.flops > 0 and here.bandwidth > 0 and here.launch > 0


def rows(mesh: AbstractMesh):
    x = ShapeDtypeStruct((4096, 64), np.float32, sharding=NamedSharding(mesh, P("data")))
    return (lambda x: (x * x).sum()), [x]


def test_a_sum_over_rows() -> None:
    p = predict(rows, AbstractMesh((256,), ("data",)), MACHINE)
    tree = 8 * (1e-6 + 4e-9)
    assert p.communication == pytest.approx(tree) and p.sent == pytest.approx({"data": 32})
    assert p.compute == pytest.approx(p.alone / 256, rel=0.1), "each device has its part of the work"
    assert p.efficiency == pytest.approx(p.alone / 256 / (p.compute + tree))


def test_devices_that_share_a_processor_compute_no_faster() -> None:
    p = predict(rows, AbstractMesh((4,), ("data",)), replace(MACHINE, shared=True))
    assert p.compute == pytest.approx(p.alone, rel=0.1) and p.efficiency < 0.3


PROGRAM = """
import numpy as np
from polyax import NamedSharding, P, ShapeDtypeStruct

def rows(mesh):
    return lambda x: (x * x).sum(), [ShapeDtypeStruct((4096, 64), np.float32, sharding=NamedSharding(mesh, P("data")))]
"""
MACHINE_OPTIONS = ["--flops", "1T", "--bandwidth", "100GB/s", "--link", "1GB/s:1us"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    assert main(["scale", f"{path}:rows", "--mesh", "1024", *MACHINE_OPTIONS]) == 0
    table = capsys.readouterr().out.splitlines()[2:]
    assert table[0].split()[:2] == ["devices", "mesh"] and len(table) == 12 and table[-1].split()[0] == "1024"
    assert "nothing" in table[1] and "data: 40 B" in table[-1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--mesh", "1y2"], "expected sizes such as 1x256, got '1y2'"),
        (["--mesh", "2x2", "--axes", "data"], "2 axes need as many names, got data"),
        (["--mesh", "2", "--link", "fast"], "expected a number such as"),
    ],
)
def test_what_the_command_refuses(options: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "program.py:rows", *options, "--flops", "1T", "--bandwidth", "1T"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("polyax scale: ") and text in told


def test_meshes_grow() -> None:
    assert [m.size for m in growing(AbstractMesh((2, 6), ("x", "y")))] == [1, 2, 4, 6, 12]


def test_a_command_whose_name_is_taken_is_left_out() -> None:
    @hookimpl
    def polyax_commands():
        return [Command("scale", "another", lambda parser: None, lambda options: 7)]

    record = registry.register(types.SimpleNamespace(polyax_commands=polyax_commands), "any.more")
    try:
        with pytest.warns(UserWarning, match="brings a command 'scale', which there is already"):
            assert main(["info"]) == 0
    finally:
        registry.unregister(record)
