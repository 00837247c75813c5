"""``checkpoint`` (rematerialisation): what the backward pass needs is computed again instead of being kept.

``remat2[jaxpr policy prevent_cse differentiated]`` is a call whose residuals are its inputs, and the values that
the policy allows to be saved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from polyax.control.calls.family import CallLike, Params
from polyax.control.inner.answers import Offloadable
from polyax.control.inner.lists import Mask, cut, kept, merged, partition
from polyax.control.inner.policies import Policy
from polyax.control.inner.programs import derived, hoisted, inlined, pruned, run, without_inputs
from polyax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, Var
from polyax.ir.primitive import Primitive
from polyax.ir.refs import is_ref
from polyax.ops.memories import put_into
from polyax.trace.aliases import referent
from polyax.trace.calls import Signature
from polyax.trace.context import set_trace
from polyax.trace.positions import unless_empty
from polyax.trace.traces import Traces
from polyax.trace.tree import tree_unflatten
from polyax.transforms.linearize import PartialTrace, partial_eval_jaxpr
from polyax.transforms.memo import memoize_by_jaxpr
from polyax.transforms.transpose import transpose_jaxpr

if TYPE_CHECKING:
    from polyax.control.calls.saving import Saving

remat_p = Primitive("remat2", higher_order=True)


_DEPRECATED: Any = object()


def checkpoint(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: Any = _DEPRECATED,
) -> Callable[..., Any]:
    """``fun``, whose intermediate values are computed again in the backward pass instead of being kept: less memory
    for more work. It is traced once for each combination of types and static values.

    Args:
      fun: a function of pytrees of arrays.
      prevent_cse: kept for compatibility: what is computed again is never shared with the forward pass.
      policy: which values may be saved all the same, see ``checkpoint_policies``; None: none of them.
      static_argnums, static_argnames: arguments that aren't arrays, which ``fun`` may branch on. Those without a hash
        are traced each time.
      concrete: not supported.

    Raises:
      NotImplementedError: ``concrete`` is given.

    >>> import polyax
    >>> print(round(float(polyax.grad(checkpoint(lambda x: polyax.numpy.sin(polyax.numpy.sin(x))))(1.0)), 6))
    0.360039
    """
    if concrete is not _DEPRECATED:
        raise NotImplementedError(
            "The `concrete` option to `polyax.checkpoint` is not supported: use `static_argnums` for arguments that "
            "the function branches on."
        )
    if not isinstance(prevent_cse, (bool, tuple, list)):
        raise TypeError(f"prevent_cse must be a bool or tuple of bools, got {type(prevent_cse)=}")
    marked = unless_empty(static_argnums), unless_empty(static_argnames)
    signature = Signature(
        fun,
        "checkpoint",
        static=marked,
        too_few=_TOO_FEW,
        hashable=False,
        traced_for="checkpoint / remat",
        aliases=True,
        views=True,
    )
    traces = Traces()
    cse = prevent_cse if isinstance(prevent_cse, bool) else tuple(prevent_cse)

    @functools.wraps(fun)
    def rematerialized(*args: Any, **kwargs: Any) -> Any:
        call = signature.split(args, kwargs)
        made = traces.of(call)
        program, consts = hoisted(made.closed)
        program, given = _each_once(program, [*consts, *call.leaves])
        params = {"jaxpr": program, "policy": policy, "prevent_cse": cse, "differentiated": False}
        return tree_unflatten(made.out_tree, remat_p.bind(*given, **params))

    return rematerialized


_TOO_FEW = (
    "the `static_argnums` argument to `jax.checkpoint` / `jax.remat` can only take integer values greater than or "
    "equal to `-len(args)` and less than `len(args)`, but got {given}, while `len(args)` = {count}"
)


def _each_once(program: ClosedJaxpr, args: Sequence[Any]) -> tuple[ClosedJaxpr, Sequence[Any]]:
    """The program and its arguments, of which no two are one reference: what is written by one name is read by all."""
    if not any(map(is_ref, args)):
        return program, args
    first: dict[Any, int] = {}
    places = tuple([first.setdefault(id(referent(x)) if is_ref(x) else (n,), len(first)) for n, x in enumerate(args)])
    if len(first) == len(args):
        return program, args
    return _with_inputs(program, places), [args[places.index(n)] for n in range(len(first))]


@memoize_by_jaxpr
def _with_inputs(program: ClosedJaxpr, places: tuple[int, ...]) -> ClosedJaxpr:
    """The program whose arguments are at ``places`` of what it is given."""
    avals = [program.in_avals[places.index(n)] for n in range(max(places) + 1)]
    return derived(program, lambda *args: run(program, [args[n] for n in places]), avals)


class _Checkpoint(CallLike):
    def derivative(self, params: Params) -> Params:
        return params | {"differentiated": True}

    def partial_eval(self, trace: PartialTrace, unknown: Sequence[bool], args: Sequence[Any], params: Params) -> Any:
        """What is known is computed; the rest gets the known inputs that it needs, and the values that the policy
        saves."""
        known, later, needed, out_unknown, offloaded = _split(params["jaxpr"], tuple(unknown), params["policy"])
        unknowns, knowns = partition(unknown, args)
        with set_trace(trace.known):
            outs, values = cut(run(known, knowns), out_unknown.count(False))
            saved = [put_into(x, o.dst) if o else x for x, o in zip(values, offloaded, strict=True)]
        results: list[Any] = []
        if any(out_unknown):
            with set_trace(trace.unknown):
                given = [*kept(needed, knowns), *saved, *unknowns]
                results = self.bind(later, given, self.derivative(params), (), ())
        return merged(out_unknown, results, outs)

    def backward(self, params: Params, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
        """The backward pass computes the residuals again, and runs the linear part backwards."""
        return _backward(params["jaxpr"], linear, nonzero)


_Checkpoint(remat_p).install("impl", "abstract_eval", "jvp", "batch", "transpose", "partial_eval", "dce", "sub_jaxprs")


@memoize_by_jaxpr
def _split(
    jaxpr: ClosedJaxpr, unknown: Mask, policy: Policy | None
) -> tuple[ClosedJaxpr, ClosedJaxpr, Mask, Mask, Sequence[Offloadable | None]]:
    """The program of known results and saved values; that of known inputs, saved values and unknown inputs; which of
    the known inputs it needs; which results are unknown; which saved values are in other memory."""
    from polyax.control.calls.saving import saving  # loaded with the first derivative

    parts = partial_eval_jaxpr(jaxpr if policy is None else inlined(jaxpr), unknown)
    program = parts.known if policy is None else inlined(parts.known)
    body = program.jaxpr
    n = len(body.outvars) - parts.num_residuals
    found = saving(body, policy)
    again, saved, needed = _again(program, body.outvars[n:], found)
    offloaded = [a if isinstance(a, Offloadable) else None for a in map(found.answers.get, saved)]
    first = Jaxpr(body.constvars, body.invars, [*body.outvars[:n], *saved], found.storing, None, body.debug_name)
    known = pruned(ClosedJaxpr(first, program.consts), (True,) * (n + len(saved)))[0]
    given = len(again.in_avals) - len(saved)

    def later(*args: Any) -> list[Any]:
        inputs, values, others = cut(args, given, len(saved))
        back = [put_into(x, o.src) if o else x for x, o in zip(values, offloaded, strict=True)]
        return run(parts.unknown, [*run(again, [*inputs, *back]), *others])

    avals = [*again.in_avals, *parts.unknown.in_avals[parts.num_residuals :]]
    return known, derived(jaxpr, later, avals), needed, parts.out_unknown, offloaded


def _again(known: ClosedJaxpr, residuals: Sequence[Atom], found: Saving) -> tuple[ClosedJaxpr, list[Var], Mask]:
    """The program that computes ``residuals`` from inputs and saved values, as few of them as possible."""
    body, values = known.jaxpr, list(found.answers)
    jaxpr = Jaxpr(body.constvars, [*body.invars, *values], residuals, found.reading, None, body.debug_name)
    again, used = pruned(ClosedJaxpr(jaxpr, known.consts), (True,) * len(residuals))
    needed, wanted = used[: len(body.invars)], used[len(body.invars) :]
    return without_inputs(again, used), kept(wanted, values), needed


@memoize_by_jaxpr
def _backward(jaxpr: ClosedJaxpr, linear: Mask, nonzero: Mask) -> tuple[ClosedJaxpr, Mask]:
    parts = partial_eval_jaxpr(jaxpr, linear)
    residuals = (False,) * parts.num_residuals
    nonzero = tuple(kept(parts.out_unknown, nonzero))
    body, nonzero_out = transpose_jaxpr(parts.unknown, (*residuals, *[True] * sum(linear)), nonzero)
    n = len(parts.known.out_avals) - parts.num_residuals
    num_known = linear.count(False)

    def fun(*args: Any) -> list[Any]:
        return run(body, [*run(parts.known, args[:num_known])[n:], *args[num_known:]])

    avals = [*parts.known.in_avals, *body.in_avals[parts.num_residuals :]]
    return derived(jaxpr, fun, avals), nonzero_out
