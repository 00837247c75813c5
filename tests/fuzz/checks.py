"""What must hold of a program: each transformed, compiled form gives what its plain text gives on the reference.

Each check takes a case and the platform that its form runs on, and fails by raising.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fuzz.programs import Case, loss

import polyax as jax

Arrays = list[np.ndarray]
Function = Callable[..., Any]
Check = Callable[[Case, str], None]


def assert_close(found: Any, wanted: Any, rtol: float = 1e-3) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted)
    elif wanted.size:
        finite = np.abs(wanted[np.isfinite(wanted)])
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol / 10 * max(1.0, finite.max(initial=0.0)))


def assert_all_close(found: Sequence[Any], wanted: Sequence[Any], rtol: float = 1e-3) -> None:
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert_close(x, y, rtol)


def on(platform: str, f: Function, *args: Any) -> Arrays:
    with jax.default_device(jax.devices(platform)[0]):
        return [np.asarray(x) for x in jax.tree_util.tree_leaves(f(*map(jax.numpy.asarray, args)))]


def directions(args: Sequence[np.ndarray], seed: int = 0) -> Arrays:
    values = np.random.default_rng(seed)
    return [np.asarray(values.integers(-4, 5, x.shape) / 4, x.dtype) for x in args]


class Form:
    """A program, or its plain text, as a function of its inexact arguments; and the derivatives of it."""

    def __init__(self, case: Case, f: Function) -> None:
        self.case, self.f = case, f
        self.args = [case.args[n] for n in case.inexact]

    def __call__(self, *xs: Any) -> list[Any]:
        """The inexact results."""
        given = dict(zip(self.case.inexact, xs, strict=True))
        results = self.f(*(given[n] if n in given else jax.numpy.asarray(x) for n, x in enumerate(self.case.args)))
        return [x for x in results if np.dtype(x.dtype).kind == "f"]

    def loss(self, *xs: Any) -> Any:
        return loss(jax, self(*xs))

    def tangents(self, *xs: Any) -> Any:
        return jax.jvp(self, xs, tuple(directions(xs)))[1]

    def gradient(self, *xs: Any) -> Any:
        return jax.grad(self.loss, tuple(range(len(xs))))(*xs)

    def forward_over_reverse(self, *xs: Any) -> Any:
        return jax.jvp(self.gradient, xs, tuple(directions(xs)))[1]

    def reverse_over_forward(self, *xs: Any) -> Any:
        return jax.grad(lambda *xs: loss(jax, self.tangents(*xs)), tuple(range(len(xs))))(*xs)


def forms(case: Case) -> tuple[Form, Form]:
    return Form(case, case.run), Form(case, case.plain)


def evaluated(case: Case, platform: str) -> None:
    assert_all_close(on(platform, case.run, *case.args), on("reference", case.plain, *case.args))


def jitted(case: Case, platform: str) -> None:
    assert_all_close(on(platform, jax.jit(case.run), *case.args), on("reference", case.plain, *case.args))


def interpreted(case: Case, platform: str) -> None:
    """Without ``jit`` loops run in Python; those without steps can't know the types of their results."""
    try:
        with jax.disable_jit():
            found = on(platform, case.run, *case.args)
    except ValueError as e:
        if "zero-length scan" not in str(e):
            raise
        return
    assert_all_close(found, on("reference", case.plain, *case.args))


def each(f: Function, batches: Sequence[np.ndarray]) -> Arrays:
    """What ``f`` gives for each example on the reference, stacked."""
    examples = [on("reference", f, *args) for args in zip(*batches, strict=True)]
    return [np.stack(xs) for xs in zip(*examples, strict=True)]


def batches(args: Sequence[np.ndarray]) -> Arrays:
    return [np.stack([x, np.flip(x)]) for x in args]


def batched(case: Case, platform: str) -> None:
    given = batches(case.args)
    assert_all_close(on(platform, jax.jit(jax.vmap(case.run)), *given), each(case.plain, given))


def partly_batched(case: Case, platform: str) -> None:
    """Of all arguments only the first carries the axis."""
    first, *rest = case.args
    given = np.stack([first, np.flip(first)])
    mapped = jax.vmap(case.run, in_axes=(0, *[None] * len(rest)))
    assert_all_close(on(platform, mapped, given, *rest), each(case.plain, [given, *(np.stack([x, x]) for x in rest)]))


def pushed(case: Case, platform: str) -> None:
    run, plain = forms(case)
    assert_all_close(on(platform, jax.jit(run.tangents), *run.args), on("reference", plain.tangents, *plain.args))


def linearized(case: Case, platform: str) -> None:
    run, plain = forms(case)
    linear = lambda *xs: jax.linearize(run, *xs)[1](*directions(xs))
    assert_all_close(on(platform, linear, *run.args), on("reference", plain.tangents, *plain.args))


def transposed(case: Case, platform: str) -> None:
    """The product of cotangents with tangents is the same on both sides of the linear map."""
    run, plain = forms(case)
    out = on("reference", plain.tangents, *plain.args)
    cts = directions(out, 1)
    pull = lambda *xs: jax.vjp(run, *xs)[1]([jax.numpy.asarray(ct) for ct in cts])
    products = lambda a, b: np.array([np.vdot(x.astype(float), y.astype(float)) for x, y in zip(a, b, strict=True)])
    there, back = products(cts, out), products(on(platform, pull, *run.args), directions(run.args))
    scale = max(1.0, *np.abs(there), *np.abs(back)) if out else 1.0
    assert abs(there.sum() - back.sum()) <= 1e-3 * scale, (there, back)


def differentiated(case: Case, platform: str) -> None:
    run, plain = forms(case)
    assert_all_close(on(platform, jax.jit(run.gradient), *run.args), on("reference", plain.gradient, *plain.args))


def rematerialized(case: Case, platform: str) -> None:
    run, plain = forms(case)
    again = jax.grad(jax.checkpoint(run.loss), tuple(range(len(run.args))))
    assert_all_close(on(platform, jax.jit(again), *run.args), on("reference", plain.gradient, *plain.args))


def differentiated_in_batches(case: Case, platform: str) -> None:
    run, plain = forms(case)
    given = batches(run.args)
    assert_all_close(on(platform, jax.jit(jax.vmap(run.gradient)), *given), each(plain.gradient, given))


def batches_differentiated(case: Case, platform: str) -> None:
    run, plain = forms(case)
    given = batches(run.args)
    total = lambda *xs: jax.numpy.sum(jax.vmap(run.loss)(*xs))
    gradient = jax.grad(total, tuple(range(len(given))))
    assert_all_close(on(platform, gradient, *given), each(plain.gradient, given))


def twice_forward_last(case: Case, platform: str) -> None:
    run, plain = forms(case)
    wanted = on("reference", plain.forward_over_reverse, *plain.args)
    assert_all_close(on(platform, run.forward_over_reverse, *run.args), wanted, 1e-2)


def twice_reverse_last(case: Case, platform: str) -> None:
    run, plain = forms(case)
    wanted = on("reference", plain.reverse_over_forward, *plain.args)
    assert_all_close(on(platform, jax.jit(run.reverse_over_forward), *run.args), wanted, 1e-2)


def measured(case: Case, platform: str) -> None:
    """Tangents are the differences of what a small step changes, in float64."""
    run, plain = forms(case)
    ts, h = directions(run.args), 1e-6
    ahead, behind = ([x + s * t for x, t in zip(run.args, ts, strict=True)] for s in (h, -h))
    ends = (on("reference", plain, *xs) for xs in (ahead, behind))
    wanted = [(a - b) / (2 * h) for a, b in zip(*ends, strict=True)]
    assert_all_close(on(platform, run.tangents, *run.args), wanted, 1e-3)


ALWAYS = (evaluated, jitted, interpreted, batched, partly_batched)
FORWARD = (pushed, linearized)
BACKWARD = (transposed, differentiated, rematerialized, differentiated_in_batches, batches_differentiated)
TWICE = (twice_forward_last, twice_reverse_last)
WHOLE = (
    jitted, batched, pushed, differentiated, rematerialized, differentiated_in_batches, twice_reverse_last,
)  # fmt: skip
"""Those whose forms are compiled as one program each."""


def checks_of(case: Case) -> tuple[Check, ...]:
    """What can be asked of ``case``."""
    if not case.inexact:
        return ALWAYS
    forward = FORWARD if case.forward else ()
    backward = BACKWARD if case.backward else ()
    return (*ALWAYS, *forward, *backward, *(TWICE if forward and backward else ()))
