"""``custom_linear_solve`` and ``custom_root``: solutions defined by equations, differentiated through these.

``custom_linear_solve[programs const_lengths num_x] *consts *b``: four programs, ``matvec vecmat solve
transpose_solve``, each with constants of its own. If A x = b then A dx = db - dA x, and the cotangent of b solves
Aᵀ y = ct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyax.control.calls.custom_jvp import custom_jvp
from polyax.control.inner.differences import check_same, results
from polyax.control.inner.lists import Mask, cut, either, fixpoint, kept, nonzeros
from polyax.control.inner.programs import derived, hoisted, run
from polyax.ir.aval import ShapedArray, aval_of
from polyax.ir.effects import Effects
from polyax.ir.jaxpr import ClosedJaxpr
from polyax.ir.primitive import Primitive, def_rule
from polyax.ops.basis import neg, sub
from polyax.ops.convert import stop_gradient
from polyax.ops.zeros import instantiate
from polyax.trace.flat import check_callable, name_of, trace_tree
from polyax.trace.symbolic import Zero, is_undef
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_leaves, tree_unflatten
from polyax.trace.varying import pvary, vma_of
from polyax.transforms.jvp import jvp_flat, jvp_jaxpr
from polyax.transforms.linearize import Linearized, linearize_flat
from polyax.transforms.transpose import transpose_jaxpr
from polyax.transforms.vmap import AxisData, batch_jaxpr, match_axis

linear_solve_p = Primitive("custom_linear_solve", higher_order=True)

Programs = tuple[ClosedJaxpr, ClosedJaxpr | None, ClosedJaxpr, ClosedJaxpr | None]
"""``matvec vecmat solve transpose_solve``; without the transposed ones there is no reverse mode."""
NAMES = ("matvec", "vecmat", "solve", "transpose_solve")


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[..., Any],
    transpose_solve: Callable[..., Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """``x`` with ``matvec(x) = b``, found by ``solve(matvec, b)``; differentiated by solving further linear systems.

    Args:
      matvec: a linear function from trees like ``x`` to trees like ``b``, which have one structure.
      solve: ``solve(matvec, b)`` gives the solution; with ``has_aux``, a pair of it and anything else.
      transpose_solve: ``transpose_solve(vecmat, b)`` solves the transposed system; needed for reverse mode.
      symmetric: the system is its own transpose, so that ``solve`` serves for it.

    >>> import polyax, numpy as np
    >>> polyax.grad(lambda a: custom_linear_solve(lambda x: a * x, 6.0, lambda f, b: b / f(1.0), symmetric=True))(2.0)
    Array(-1.5, dtype=float32, weak_type=True)
    """
    for fun in (matvec, solve):
        check_callable(fun)
    leaves, tree = tree_flatten(b)
    system, system_tree = trace_tree(matvec, (_like(tree, leaves),))
    wanted = frozenset[Any]().union(*(a.vma for a in system.out_avals))
    if not all(wanted <= vma_of(x) for x in leaves):  # solutions vary as the system does
        leaves = [pvary(x, wanted) for x in leaves]
        system, system_tree = trace_tree(matvec, (_like(tree, leaves),))
    like_b, avals = _like(tree, leaves), [aval_of(x) for x in leaves]
    _check_like_b("matvec", matvec, (system_tree, tree), (system.out_avals, avals))
    solution, solution_tree = _solving(solve, matvec, like_b, has_aux)
    transposed: list[ClosedJaxpr | None] = [None, None]
    if symmetric:
        transposed = [system, solution]
    elif transpose_solve is not None:
        vecmat = _transposed(system)
        back = lambda y: tree_unflatten(tree, run(vecmat, tree_leaves(y)))
        transposed = [vecmat, _solving(transpose_solve, back, like_b, has_aux, "transpose_solve")[0]]
    outs = _bind((system, transposed[0], solution, transposed[1]), leaves)
    return tree_unflatten(solution_tree, outs)


def _like(tree: PyTreeDef, leaves: Sequence[Any]) -> Any:
    return tree_unflatten(tree, [aval_of(x) for x in leaves])


def _solving(
    solve: Callable[..., Any], matvec: Callable[[Any], Any], like_b: Any, has_aux: bool, name: str = "solve"
) -> tuple[ClosedJaxpr, PyTreeDef]:
    """The program of a user's solver, whose solutions are like ``b``."""
    solution, tree = trace_tree(lambda y: solve(matvec, y), (like_b,))
    avals, b_tree = tree_flatten(like_b)
    x_tree = _main(tree, has_aux, name, solve)
    _check_like_b(name, solve, (x_tree, b_tree), (solution.out_avals[: x_tree.num_leaves], avals))
    return solution, tree


def _main(tree: PyTreeDef, has_aux: bool, name: str, solve: Callable[..., Any]) -> PyTreeDef:
    """The structure of the solution, without what else a solver gives."""
    if has_aux and len(tree.children()) != 2:
        raise TypeError(f"with has_aux, {name} ({name_of(solve)}) must return a pair, got {tree}")
    return tree.children()[0] if has_aux else tree


def _check_like_b(
    name: str,
    fun: Callable[..., Any],
    trees: tuple[PyTreeDef, PyTreeDef],
    avals: tuple[Sequence[ShapedArray], Sequence[ShapedArray]],
) -> None:
    _check_structure(name, "b", *trees)
    got, wanted = ([a.shape for a in group] for group in avals)
    if got != wanted:
        raise ValueError(f"{name}() output shapes must match b, got {got} and {wanted}: see {name_of(fun)}")
    what = f"{name} ({name_of(fun)}) of custom_linear_solve must give vectors like b: its output and b must"
    check_same(results(what, (f"{name}'s output", "b"), name), trees, avals)


def _transposed(system: ClosedJaxpr) -> ClosedJaxpr:
    program, consts = hoisted(system)
    n = len(system.in_avals)
    force = (True,) * n
    backward, _ = transpose_jaxpr(program, (False,) * len(consts) + force, (True,) * len(system.out_avals), force)

    def fun(*cts: Any) -> list[Any]:
        return run(backward, [*consts, *cts])

    return derived(system, fun, system.out_avals)


def _bind(programs: Sequence[ClosedJaxpr | None], b: Sequence[Any]) -> list[Any]:
    parts = [(None, []) if p is None else hoisted(p) for p in programs]
    consts = [c for _, values in parts for c in values]
    lengths = tuple(len(values) for _, values in parts)
    return linear_solve_p.bind(*consts, *b, programs=tuple(p for p, _ in parts), const_lengths=lengths, num_x=len(b))


@def_rule(linear_solve_p, "abstract_eval")
def _abstract_eval(*_: ShapedArray, programs: Programs, **__: Any) -> tuple[list[ShapedArray], Effects]:
    return programs[2].out_avals, programs[2].effects


@def_rule(linear_solve_p, "jvp")
def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, programs: Programs, const_lengths: Sequence[int], num_x: int
) -> Any:
    params = {"programs": programs, "const_lengths": const_lengths, "num_x": num_x}
    outs = linear_solve_p.bind(*primals, **params)
    *consts, _ = cut(primals, *const_lengths)
    *const_dots, b_dots = cut(tangents, *const_lengths)
    nonzero = nonzeros(const_dots[0])
    x = outs[:num_x]
    rhs = [instantiate(t) for t in b_dots]
    if any(nonzero):
        both, _ = jvp_jaxpr(programs[0], nonzero + (False,) * num_x, (True,) * num_x)
        changes = run(both, [*consts[0], *x, *kept(nonzero, const_dots[0])])[num_x:]
        rhs = [sub(t, c) for t, c in zip(rhs, changes, strict=True)]
    dots = linear_solve_p.bind(*(c for group in consts for c in group), *rhs, **params)
    return outs, [*dots[:num_x], *map(Zero.of, outs[num_x:])]


@def_rule(linear_solve_p, "transpose")
def _transpose(
    cts: Sequence[Any], *args: Any, programs: Programs, const_lengths: Sequence[int], num_x: int
) -> list[Any]:
    if programs[3] is None:
        raise TypeError("transpose_solve required for backwards mode automatic differentiation of custom_linear_solve")
    *consts, b = cut(args, *const_lengths)
    if any(is_undef(c) for group in consts for c in group) or not all(map(is_undef, b)):
        raise NotImplementedError("custom_linear_solve is linear in all of b, and in nothing else")
    swapped = (1, 0, 3, 2)
    outs = linear_solve_p.bind(
        *(c for n in swapped for c in consts[n]),
        *map(instantiate, cts[:num_x]),
        programs=tuple(programs[n] for n in swapped),
        const_lengths=tuple(const_lengths[n] for n in swapped),
        num_x=num_x,
    )
    return [*[None] * sum(const_lengths), *outs[:num_x]]


@def_rule(linear_solve_p, "batch")
def _batch(
    axis: AxisData,
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    programs: Programs,
    const_lengths: Sequence[int],
    num_x: int,
) -> Any:
    """Those of the right-hand sides and solutions are mapped, at dimension 0, that depend on what is."""
    *const_dims, b_dims = cut(dims, *const_lengths)
    *consts, b = cut(args, *const_lengths)

    def batched(n: int, given: Mask, wanted: Mask) -> tuple[ClosedJaxpr | None, Sequence[int | None]]:
        program = programs[n]
        if program is None:
            return None, [0 if w else None for w in wanted]
        at = (*const_dims[n], *(0 if g else None for g in given))
        return batch_jaxpr(program, axis, at, wanted + (False,) * (len(program.out_avals) - num_x))

    def all_batched(mapped: Mask) -> list[tuple[ClosedJaxpr | None, Sequence[int | None]]]:
        of_b, of_x = mapped[:num_x], mapped[num_x:]
        return [batched(n, *((of_b, of_x) if n in (1, 2) else (of_x, of_b))) for n in range(4)]

    def grow(mapped: Mask) -> Mask:
        b, cts_x, x, cts_b = ([d is not None for d in dims] for _, dims in all_batched(mapped))
        return either(b, cts_b) + either(x[:num_x], cts_x)

    mapped = fixpoint(grow, (*(d is not None for d in b_dims), *[False] * num_x))
    programs_and_dims = all_batched(mapped)
    outs = linear_solve_p.bind(
        *(c for group in consts for c in group),
        *(match_axis(axis, d, 0, x) if m else x for x, d, m in zip(b, b_dims, mapped[:num_x], strict=True)),
        programs=tuple(p for p, _ in programs_and_dims),
        const_lengths=tuple(const_lengths),
        num_x=num_x,
    )
    return outs, programs_and_dims[2][1]


linear_solve_p.never("partial_eval", "the primal and the tangent system are solved apart")
linear_solve_p.never("dce", "the solution is one")


@def_rule(linear_solve_p, "sub_jaxprs")
def _sub_jaxprs(*, programs: Programs, **_: Any) -> list[ClosedJaxpr]:
    return [p for p in programs if p is not None]


@def_rule(linear_solve_p, "pretty")
def _pretty(*, programs: Programs, **_: Any) -> dict[str, Any]:
    return {name: p for name, p in zip(NAMES, programs, strict=True) if p is not None}


@def_rule(linear_solve_p, "decompose")
def _decompose(*args: Any, programs: Programs, const_lengths: Sequence[int], **_: Any) -> list[Any]:
    consts, b = cut(args, *const_lengths)[2::2]
    return run(programs[2], [*consts, *b])


# --- roots ----------------------------------------------------------------------------------------------------------


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """``x`` with ``f(x) = 0``, found by ``solve(f, initial_guess)``; differentiated by the implicit function theorem.

    Args:
      f: a function of pytrees, with results of the structure of its argument; it may close over traced values.
      solve: gives the root; with ``has_aux``, a pair of it and anything else.
      tangent_solve: ``tangent_solve(g, y)`` gives ``x`` with ``g(x) = y`` for the linear function ``g``.

    >>> import polyax
    >>> def root(a):
    ...     newton = lambda f, x: polyax.lax.fori_loop(0, 20, lambda _, x: 0.5 * (x + a / x), x)
    ...     return custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> print(root(4.0), polyax.grad(root)(4.0))
    2.0 0.25
    """
    guesses, tree = tree_flatten(initial_guess)
    like = tree_unflatten(tree, [aval_of(x) for x in guesses])
    closed, out_tree = trace_tree(f, (like,))
    _check_structure("f", "initial_guess", out_tree, tree)
    what = f"f ({name_of(f)}) of custom_root must give residuals like its argument: its output and initial_guess must"
    sides = results(what, ("f's output", "initial_guess"), "f")
    check_same(sides, (out_tree, tree), (closed.out_avals, tree_leaves(like)))
    program, values = hoisted(closed)

    def linearized(x: Any, rhs: Any) -> Any:
        """The solution of the linear system that ``f`` is near ``x``."""
        _, linear = linearize_flat(lambda *xs: run(closed, xs), tree_leaves(x))
        return tangent_solve(lambda v: tree_unflatten(tree, apply_linear(linear, tree_leaves(v))), rhs)

    solving, found_tree = trace_tree(lambda x: solve(f, x), (like,))
    _check_structure("solve", "initial_guess", _main(found_tree, has_aux, "solve", solve), tree)
    solving, of_solve = hoisted(solving)
    tangents_of, tangent_tree = trace_tree(linearized, (like, like))
    _check_structure("tangent_solve", "x", tangent_tree, tree)
    tangents_of, of_tangents = hoisted(tangents_of)
    sizes = len(guesses), len(values), len(of_solve)

    @custom_jvp
    def root(*args: Any) -> list[Any]:
        guess, _, own, _ = cut(args, *sizes)
        return run(solving, [*own, *guess])

    @root.defjvp
    def root_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """If f(x, c) = 0 then dx solves f_x dx = -f_c dc."""
        outs = root(*primals)
        _, own, _, consts = cut(primals, *sizes)
        _, dots, _, _ = cut(tangents, *sizes)
        solution = outs[: len(guesses)]
        _, change = jvp_flat(lambda *cs: run(program, [*cs, *solution]), own, dots)
        found = run(tangents_of, [*consts, *solution, *(neg(instantiate(t)) for t in change)])
        return outs, [*found, *(instantiate(Zero.of(x)) for x in outs[len(guesses) :])]

    guess = [stop_gradient(x) for x in guesses]
    return tree_unflatten(found_tree, root(*guess, *values, *of_solve, *of_tangents))


def _check_structure(name: str, like: str, got: PyTreeDef, wanted: PyTreeDef) -> None:
    if got != wanted:
        raise TypeError(f"{name}() output pytree structure must match {like}, got {got} and {wanted}.")


def apply_linear(linear: Linearized, tangents: Sequence[Any]) -> list[Any]:
    """All output tangents of a linearized function, zeros as arrays."""
    outs = iter(run(linear.jaxpr, kept(linear.nonzero_in, tangents)))
    avals = [a.to_tangent_aval() for a in linear.out_avals]
    return [next(outs) if nz else instantiate(Zero(a)) for nz, a in zip(linear.nonzero_out, avals, strict=True)]
