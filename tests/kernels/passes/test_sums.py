"""Library calls whose results are added up over devices, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from kernels.numpy_backend import NumpyKernelBackend

import polyax
from polyax import lax
from polyax.ir.primitive import Primitive
from polyax.ops.contract import dot_general_p
from polyax.runtime.contract.backend import CompileOptions
from polyax.runtime.contract.collectives import Group, entered
from polyax.runtime.contract.hooks import Offer
from polyax_kernels.ir.expr import consing
from polyax_kernels.lower.fallback import on_host
from polyax_kernels.lower.lowering import Call
from polyax_kernels.pipeline import plan_of
from polyax_kernels.plan.plan import CallStep, Plan
from support.offers import offered

MEMBERS = 3
AXES = (("i", MEMBERS),)
RNG = np.random.default_rng(0)
A = RNG.standard_normal((MEMBERS, 160, 7)).astype("f4")
B = RNG.standard_normal((MEMBERS, 7, 130)).astype("f4")
V = RNG.standard_normal((MEMBERS, 130)).astype("f4")


class AddingBackend(NumpyKernelBackend):
    """Its products of matrices can be added up; ``added`` counts how often they were."""

    def __init__(self) -> None:
        super().__init__()
        self.added = 0

    def lowerings(self) -> Mapping[Primitive, Sequence[Offer]]:
        return offered({dot_general_p: Call(on_host(dot_general_p).run, adds=self._adds)})

    def _adds(self, avals, params):
        if len(avals[1].shape) == 1:
            return None

        def run(outs, args, shared):
            self.added += 1
            total = sum(x @ y for x, y in args)
            shared(len(outs), lambda n: np.copyto(outs[n][0], total))

        return run


def compiled(fun, args, members=MEMBERS):
    """The backend, the plan, the executable."""
    backend = AddingBackend()
    closed = polyax.make_jaxpr(fun, axis_env=[*AXES])(*[x[0] for x in args])
    options = CompileOptions(backend.devices()[0], members=members)
    with consing():
        plan = plan_of(closed, backend.compilation(options))
    return backend, plan, backend.compile(closed, options), closed.out_avals


def calls(plan: Plan) -> list[tuple[str, ...]]:
    return [tuple(map(str, step.primitives)) for step in plan.steps if isinstance(step, CallStep)]


def inputs(backend, args, n):
    return [backend.to_device(x[n], backend.devices()[0]) for x in args]


def as_one(backend, executable, avals, args):
    members = [inputs(backend, args, n) for n in range(MEMBERS)]
    outs, _ = executable.launch_members(members, backend.devices()[0].queue, AXES)
    return [[backend.to_host(b, a) for b, a in zip(bs, avals, strict=True)] for bs in outs]


def each_alone(backend, executable, avals, args):
    """As in several processes: each member in a thread of its own."""
    group = Group(AXES)

    def run(n):
        with entered(group, n):
            outs, _ = executable.launch(inputs(backend, args, n), _Here())
            return [backend.to_host(b, a) for b, a in zip(outs, avals, strict=True)]

    with ThreadPoolExecutor(MEMBERS) as pool:
        return list(pool.map(run, range(MEMBERS)))


class _Here:
    """Runs work at once."""

    def run(self, work, inputs, cost):
        work()


def one(a, b):
    return lax.psum(a @ b, "i")


def among_others(a, b, v):
    """A product, one that can't be added up, and what is no product."""
    return lax.psum((a @ b, b @ v, a * 2), "i")


WANTED = {one: lambda a, b: [a @ b], among_others: lambda a, b, v: [a @ b, b @ v, a * 2]}


@pytest.mark.parametrize("way", [as_one, each_alone])
@pytest.mark.parametrize("fun", WANTED)
def test_every_member_has_the_sum(fun, way) -> None:
    args = (A, B, V)[: 2 if fun is one else 3]
    backend, plan, executable, avals = compiled(fun, args)
    assert ("dot_general", "psum") in calls(plan)
    got = way(backend, executable, avals, args)
    wanted = [sum(xs) for xs in zip(*[WANTED[fun](*[x[n] for x in args]) for n in range(MEMBERS)], strict=True)]
    for outs in got:
        for out, want in zip(outs, wanted, strict=True):
            np.testing.assert_allclose(out, want, 1e-5, 1e-5)
    assert backend.added == (way is as_one)


def test_the_others_stay_together() -> None:
    _, plan, _, _ = compiled(among_others, (A, B, V))
    assert sorted(calls(plan)) == [("dot_general",), ("dot_general", "psum"), ("psum",)]


def read_twice(a, b):
    x = a @ b
    return lax.psum(x, "i"), x + 1


def a_result(a, b):
    x = a @ b
    return lax.psum(x, "i"), x


LEFT = {
    "read by others": (read_twice, (A, B)),
    "a result": (a_result, (A, B)),
    "small": (lambda a, b: lax.psum(a[:3] @ b, "i"), (A, B)),
    "not added up but compared": (lambda a, b: lax.pmax(a @ b, "i"), (A, B)),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_stays_as_it_is(name: str) -> None:
    fun, args = LEFT[name]
    _, plan, _, _ = compiled(fun, args)
    assert ("dot_general",) in calls(plan)
    assert ("dot_general", "psum") not in calls(plan)


def test_one_device_sums_nothing() -> None:
    _, plan, _, _ = compiled(one, (A, B), members=1)
    assert calls(plan) == [("dot_general",), ("psum",)]


def test_within_loops() -> None:
    def loop(a, b):
        return lax.fori_loop(0, 2, lambda _, c: lax.psum(a @ (b + c[:1, :1]), "i"), a @ b * 0)

    backend, _, executable, avals = compiled(loop, (A, B))
    c = np.zeros((160, 130), "f4")
    for _ in range(2):
        c = sum(a @ (b + c[:1, :1]) for a, b in zip(A, B, strict=True))
    for outs in as_one(backend, executable, avals, (A, B)):
        np.testing.assert_allclose(outs[0], c, 1e-4, 1e-3)
    assert backend.added == 2
