"""``custom_lin``: the linear equation of a ``custom_vjp``, which only knows how to run backwards; and what runs there.

Must not know how forward passes are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyax.control.calls.custom import SymbolicZero, array_given, at_front, own_lines
from polyax.control.inner.lists import cut, kept, merged, nonzeros
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of, is_array_like
from polyax.ir.config import config
from polyax.ir.primitive import Primitive, ambient, def_rule
from polyax.ops.basis import as_is, broadcast_in_dim, convert, reduce_sum
from polyax.ops.slicing import pad
from polyax.trace.flat import name_of
from polyax.trace.paths import keystr, tree_leaves_with_path
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_structure, tree_unflatten
from polyax.transforms.vmap import AxisData, batch_flat, match_axis

custom_lin_p = Primitive("custom_lin", multiple_results=True)
"""``custom_lin[backward name perturbed out_avals] *residuals *tangents``: tangents of results, known only backwards.
There are tangents for the arguments that are ``perturbed``; ``backward`` gives cotangents of all."""
custom_lin_p.only_transposed = True

Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class UserBackward:
    """A user's backward function on flat lists, for arguments of the types ``avals``.

    Python scalars among the residuals, at the places ``scalars``, stay what they are, so that rules can branch on them.
    """

    def __init__(
        self,
        owner: Any,
        nondiff: Sequence[Any],
        avals: Any,
        res_tree: PyTreeDef,
        out_tree: PyTreeDef,
        scalars: Mapping[int, Any],
    ) -> None:
        self.owner = owner
        self.nondiff = nondiff
        self.avals = avals
        self.res_tree = res_tree
        self.out_tree = out_tree
        self.scalars = scalars

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """A cotangent or ``Zero`` for each leaf of the arguments."""
        owner = self.owner
        assert owner.bwd is not None
        given = [
            SymbolicZero(ct.aval) if owner.symbolic_zeros and type(ct) is Zero else _array(array_given(ct))
            for ct in cts
        ]
        with own_lines(owner.bwd):
            out = owner.bwd(*self.nondiff, self._residuals(residuals), tree_unflatten(self.out_tree, given))
        return self._cotangents(tuple(out) if isinstance(out, list) else out)

    def _residuals(self, arrays: Sequence[Any]) -> Any:
        rest = map(_array, arrays)
        count = self.res_tree.num_leaves
        leaves = [self.scalars[n] if n in self.scalars else next(rest) for n in range(count)]
        return tree_unflatten(self.res_tree, leaves)

    def _rule(self) -> str:
        assert self.owner.bwd is not None
        return f"The rule is {name_of(self.owner.bwd)}, of function {self.owner.__name__}."

    def _cotangents(self, out: Any) -> list[Any]:
        args = self.avals
        if not isinstance(out, tuple) or len(out) != len(args):
            raise self._structure(out)
        found: list[Any] = []
        for n, (arg, cts) in enumerate(zip(args, out, strict=True)):
            found += self._of_argument(n, arg, cts, out)
        return found

    def _structure(self, out: Any) -> TypeError:
        return TypeError(
            "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args tuple "
            "of the primal function, and in particular must produce a tuple of length equal to the number of arguments "
            f"to the primal function, but got bwd output structure {tree_structure(out)} for primal input structure "
            f"{tree_structure(tuple(self.avals))}. {self._rule()}"
        )

    def _of_argument(self, n: int, arg: Any, cts: Any, out: Any) -> list[Any]:
        """One in place of a subtree is that of all its leaves; None stands for zeros."""
        paths = tree_leaves_with_path(arg)
        given, tree = tree_flatten(cts, is_leaf=lambda x: x is None)
        try:
            subtrees = tree.flatten_up_to(arg)
        except (ValueError, TypeError):
            raise self._structure(out) from None
        if not all(ct is None or type(ct) in (Zero, SymbolicZero) or is_array_like(ct) for ct in given):
            raise self._structure(out)
        leaves = [ct for ct, below in zip(given, subtrees, strict=True) for _ in tree_leaves(below)]
        return [self._checked(n, path, aval, ct) for (path, aval), ct in zip(paths, leaves, strict=True)]

    def _checked(self, n: int, path: Any, aval: ShapedArray, ct: Any) -> Any:
        wanted = aval.to_tangent_aval()
        if type(ct) is SymbolicZero and ct.aval.shape != wanted.shape:
            raise ValueError(
                f"Custom VJP bwd rule gave at output[{n}]{keystr(path)} a SymbolicZero of type {ct.aval.str_short()}, "
                f"where the primal input is of type {aval.str_short()}. Consider just returning a None here. "
                f"{self._rule()}"
            )
        if ct is None or type(ct) in (Zero, SymbolicZero) or wanted.dtype == dtypes.float0:
            return Zero(wanted)
        got = aval_of(ct)
        if (got.shape == wanted.shape and wanted.vma <= got.vma) or config.get("disable_bwd_checks"):
            return ct  # also of another dtype, as in JAX
        part = "shapes" if got.shape != wanted.shape else "manual axis types"
        raise ValueError(
            "Custom VJP bwd rule must produce an output with the same type as the args tuple of the primal "
            f"function, but at output[{n}]{keystr(path)} the bwd rule produced an output of type {got.str_short()} "
            f"corresponding to an input of type {aval.str_short()}, so the {part} do not match. {self._rule()}"
        )


def _array(x: Any) -> Any:
    """Rules may rely on the attributes of arrays, also where a program has a number of Python's in place."""
    return as_is(x) if type(x) in dtypes.PYTHON_SCALARS else x


def mapped_backward(
    backward: Backward, axis: AxisData, dims: Sequence[int | None], out_dims: Sequence[int | None]
) -> Backward:
    """``backward`` for residuals mapped at dimension 0, results at ``out_dims`` and arguments at ``dims``."""

    def mapped(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        nonzero = nonzeros(cts)
        zeros = [_example(ct, d) for ct, d, nz in zip(cts, out_dims, nonzero, strict=True) if not nz]
        found: list[Any] = []

        def back(*xs: Any) -> list[Any]:
            own, given = cut(xs, len(residuals))
            found[:] = backward(own, merged(nonzero, given, zeros))
            return kept(nonzeros(found), found)

        own = [_once(axis, ct, d) for ct, d in zip(kept(nonzero, cts), kept(nonzero, out_dims), strict=True)]
        given_dims = [*[0] * len(residuals), *[0 if d is None else d for d in kept(nonzero, out_dims)]]
        outs = iter(zip(*batch_flat(back, axis, [*residuals, *own], given_dims), strict=True))
        return [
            _mapped_zero(axis, ct, d) if type(ct) is Zero else _cotangent_at(axis, *next(outs), d)
            for ct, d in zip(found, dims, strict=True)
        ]

    return mapped


def _once(axis: AxisData, ct: Any, dim: int | None) -> Any:
    """The cotangent of a result that all examples share belongs to the first: what they give is summed."""
    if dim is not None:
        return ct
    shape = aval_of(ct).shape
    first = broadcast_in_dim(ct, (1, *shape), tuple(range(1, len(shape) + 1)))
    zero = convert(0.0, aval_of(ct).dtype, weak_type=False)
    return pad(first, zero, [(0, axis.size - 1, 0), *[(0, 0, 0)] * len(shape)])


def _example(zero: Zero, dim: int | None) -> Zero:
    shape = zero.aval.shape
    return zero if dim is None else Zero(zero.aval.with_shape(shape[:dim] + shape[dim + 1 :]))


def _mapped_zero(axis: AxisData, zero: Zero, dim: int | None) -> Zero:
    shape = zero.aval.shape
    return zero if dim is None else Zero(zero.aval.with_shape((*shape[:dim], axis.size, *shape[dim:])))


def _cotangent_at(axis: AxisData, ct: Any, dim: int | None, wanted: int | None) -> Any:
    if wanted is not None:
        return match_axis(axis, dim, wanted, ct)
    return reduce_sum(match_axis(axis, dim, 0, ct), (0,))


@def_rule(custom_lin_p, "abstract_eval")
def _lin_abstract(*_: ShapedArray, out_avals: tuple[ShapedArray, ...], **__: Any) -> list[ShapedArray]:
    return list(out_avals)


@def_rule(custom_lin_p, "impl")
@def_rule(custom_lin_p, "jvp")
@def_rule(custom_lin_p, "decompose")
def _lin_forward(*_: Any, name: str, **__: Any) -> list[Any]:
    where = f" It was called at {ambient.source}." if ambient.source else ""
    raise TypeError(
        f"can't apply forward-mode autodiff (jvp) to a custom_vjp function: {name} has a rule for reverse mode only. "
        f"Use custom_jvp, whose rules serve both modes.{where}"
    )


@def_rule(custom_lin_p, "transpose")
def _lin_transpose(
    cts: Sequence[Any], *args: Any, backward: Backward, perturbed: Sequence[bool], **_: Any
) -> list[Any]:
    residuals, linear = cut(args, len(args) - sum(perturbed))
    if not any(map(is_undef, linear)):
        return [None] * len(args)
    given = kept(perturbed, backward(residuals, list(cts)))
    return [*[None] * len(residuals), *(ct if is_undef(x) else None for x, ct in zip(linear, given, strict=True))]


@def_rule(custom_lin_p, "batch")
def _lin_batch(
    axis: AxisData,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    backward: Backward,
    perturbed: Sequence[bool],
    out_avals: tuple[ShapedArray, ...],
    name: str,
) -> Any:
    num = len(args) - sum(perturbed)
    residuals, dots = at_front(axis, args[:num], dims[:num]), args[num:]
    where = merged(perturbed, dims[num:], [None] * perturbed.count(False))
    outs = custom_lin_p.bind(
        *residuals,
        *dots,
        backward=mapped_backward(backward, axis, where, [0] * len(out_avals)),
        perturbed=perturbed,
        out_avals=tuple(a.with_shape((axis.size, *a.shape)) for a in out_avals),
        name=name,
    )
    return outs, [0] * len(outs)


custom_lin_p.never("factors", "it never runs: its transposition takes it out")
