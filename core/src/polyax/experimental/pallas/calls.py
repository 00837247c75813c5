"""``pallas_call``: kernels as loops over a grid, made of ordinary operations.

At each place the kernel gets references to blocks; what it leaves in those of results is put back into the arrays. So
kernels run on every device, and are differentiated and mapped as other functions are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from collections.abc import Mapping as Dict
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from polyax import numpy as jnp
from polyax.api.jit import jit
from polyax.control.aliasing import aliased_pairs
from polyax.control.refs.access import freeze, new_ref
from polyax.experimental.pallas.blocks import BlockSpec, CompilerParams, CostEstimate, GridSpec, no_block_spec
from polyax.experimental.pallas.grids import GridPlace, at
from polyax.experimental.pallas.mapping import Mapping, uninitialized
from polyax.ir import dtypes
from polyax.ir.aval import ShapedArray, aval_of
from polyax.lax import lenient as lax
from polyax.trace.context import extend_axis_env
from polyax.trace.flat import check_callable, name_of
from polyax.trace.paths import equality_errors_pytreedef, keystr, tree_flatten_with_path
from polyax.trace.recording import SourceOf
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_structure, tree_unflatten


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Dict[int, int] | None = None,
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: CompilerParams | None = None,
    cost_estimate: CostEstimate | None = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A function of arrays that runs a kernel at each place of a grid, one after another, the last axis fastest.

    Kernels aren't compiled for one maker's devices: they become loops of ordinary operations, on every platform,
    whether ``interpret`` is given or not.

    Args:
      kernel: gets references to blocks of the arguments, of the results, and to scratch memory, and returns nothing.
        What it writes to those of arguments is forgotten.
      out_shape: a pytree of things with ``shape`` and ``dtype``: what the results will be like. Where nothing is
        written they hold NaN, or the least integer.
      grid: the sizes, which may be computed.
      in_specs: a sequence of ``BlockSpec``, one for each argument; without it all are seen whole.
      out_specs: a pytree of ``BlockSpec`` as that of the results.
      scratch_shapes: types of memory that lasts from place to place.
      grid_spec: all four in one.
      input_output_aliases: from the numbers of flat arguments to those of flat results, which begin as these.
      name: what errors and profiles call the kernel.
      debug, interpret, compiler_params, cost_estimate, metadata: for compatibility.

    Raises:
      ValueError: block specs that don't fit the arrays, index maps that don't fit the blocks, aliases of other types,
        or a kernel that returns something.

    >>> import polyax.numpy as jnp
    >>> from polyax.experimental import pallas as pl
    >>> def add(x_ref, y_ref, o_ref):
    ...     o_ref[...] = x_ref[...] + y_ref[...]
    >>> block = pl.BlockSpec((2,), lambda i: i)
    >>> x = jnp.arange(6)
    >>> print(pallas_call(add, x, grid=3, in_specs=[block, block], out_specs=block)(x, x))
    [ 0  2  4  6  8 10]
    """
    check_callable(kernel)
    spec = grid_spec or GridSpec(grid, in_specs, out_specs, scratch_shapes)
    if grid_spec is not None:
        apart = {"grid": (grid, ()), "in_specs": (in_specs, no_block_spec), "out_specs": (out_specs, no_block_spec)}
        _check_alone({**apart, "scratch_shapes": (scratch_shapes, ())})
    called = name or name_of(kernel)
    out_shape = tuple(out_shape) if isinstance(out_shape, list) else out_shape

    def call(*args: Any) -> Any:
        return _Call(called, kernel, spec, out_shape, args, input_output_aliases or {}).run()

    call.__name__ = called
    return jit(call)


def _check_alone(apart: dict[str, tuple[Any, Any]]) -> None:
    for what, (given, default) in apart.items():
        if given is not default and given != default:
            raise ValueError(f"If `grid_spec` is specified, then `{what}` must be `{default}`. It is {given}")


class _Call:
    """A kernel with its arguments."""

    def __init__(
        self, name: str, kernel: Callable[..., None], spec: GridSpec, out_shape: Any, args: Any, aliases: Any
    ) -> None:
        self.name, self.kernel, self.spec = name, kernel, spec
        split = spec.num_scalar_prefetch
        self.scalars, rest = args[:split], args[split:]
        self.ins, self.in_tree, ins = _mapped("args", "in_specs", "inputs", spec.in_specs, rest, split)
        self.outs, self.out_tree, outs = _mapped("outputs", "out_specs", "out_shape", spec.out_specs, out_shape)
        scalars = tree_flatten(self.scalars)[0]
        flat = [*scalars, *ins]
        pairs = aliased_pairs(aliases, [aval_of(x) for x in flat], [m.aval for m in self.outs], numbered=True)
        given = {o: flat[i] for i, o in pairs}
        self.args = [m.padded(jnp.asarray(x)) for m, x in zip(self.ins, ins, strict=True)]
        self.first = [
            m.padded(given[n] if n in given else uninitialized(x.shape, m.aval.dtype))
            for n, (m, x) in enumerate(zip(self.outs, outs, strict=True))
        ]
        self.scratch, self.scratch_tree = tree_flatten(spec.scratch_shapes)

    def run(self) -> Any:
        grid = tuple(g if isinstance(g, int) else jnp.asarray(g, np.int32) for g in self.spec.grid)
        scratch = [uninitialized(s.shape, s.dtype) for s in self.scratch]

        def step(n: Any, carry: Any) -> Any:
            return self._at(GridPlace(_unravel(n, grid), grid), *carry)

        outs, _ = lax.fori_loop(0, math.prod(grid), step, (self.first, scratch))
        return tree_unflatten(self.out_tree, [m.unpadded(x) for m, x in zip(self.outs, outs, strict=True)])

    def _at(self, place: GridPlace, outs: Sequence[Any], scratch: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """What results and scratch memory hold after the kernel ran at a place."""
        with at(place), self._named_axes():
            scalars = [new_ref(x) for x in self.scalars]
            starts = [m.starts(place.indices, scalars) for m in (*self.ins, *self.outs)]
            mine = starts[len(self.ins) :]
            ins = [new_ref(m.read(x, s)) for m, x, s in zip(self.ins, self.args, starts, strict=False)]
            written = [new_ref(m.read(x, s)) for m, x, s in zip(self.outs, outs, mine, strict=True)]
            kept = [new_ref(x) for x in scratch]
            self._call_kernel(scalars, ins, written, kept)
        blocks = [freeze(r) for r in written]
        news = [m.write(x, s, b) for m, x, s, b in zip(self.outs, outs, mine, blocks, strict=True)]
        return news, [freeze(r) for r in kept]

    @contextmanager
    def _named_axes(self) -> Generator[None]:
        with ExitStack() as stack:
            stack.enter_context(extend_axis_env(object(), 1))  # what is traced once under jit isn't another kernel's
            for name, size in zip(self.spec.names, self.spec.grid, strict=False):
                stack.enter_context(extend_axis_env(name, size))
            yield

    def _call_kernel(self, scalars: Any, ins: Any, written: Any, kept: Any) -> None:
        results = tree_unflatten(self.out_tree, written)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        scratch = tree_unflatten(self.scratch_tree, kept)
        named = scratch if isinstance(scratch, dict) else {}
        more = () if named else scratch
        given = self.kernel(*scalars, *tree_unflatten(self.in_tree, ins), *results, *more, **named)
        if given is not None:
            raise ValueError(
                f"The kernel function in the pallas_call {SourceOf(self.kernel, tuple)} should return None. It returns "
                f"a PyTree: {tree_structure(given)}. What it has to give is written into the references of results."
            )


def _unravel(n: Any, grid: Sequence[Any]) -> tuple[Any, ...]:
    """The place with the number ``n``, in int32."""
    n, found = jnp.asarray(n, np.int32), []
    for size in reversed(grid):
        found.append(lax.rem(n, jnp.asarray(size, np.int32)))
        n = lax.div(n, jnp.asarray(size, np.int32))
    return tuple(reversed(found))


def _mapped(
    origin: str, specs_name: str, tree_name: str, specs: Any, tree: Any, before: int = 0
) -> tuple[list[Mapping], PyTreeDef, list[Any]]:
    """How each leaf of ``tree`` is seen, the structure, and the leaves."""
    pairs, treedef = tree_flatten_with_path(tree)
    leaves = [x for _, x in pairs]
    if specs is no_block_spec:
        flat: list[Any] = [BlockSpec()] * len(leaves)
    else:
        flat, specs_tree = tree_flatten(specs, is_leaf=lambda s: s is no_block_spec)
        if specs_tree != treedef:
            raise ValueError(_mismatch(specs_name, specs_tree, tree_name, treedef))
    paths = [keystr(p) for p, _ in pairs]
    told = [f"{origin}{_shifted(p, before)}" for p in paths]
    return (
        [
            Mapping.of(what, _type(x), BlockSpec() if s is no_block_spec else s)
            for what, x, s in zip(told, leaves, flat, strict=True)
        ],
        treedef,
        leaves,
    )


def _shifted(path: str, before: int) -> str:
    """The path of an argument among all, of which ``before`` come first."""
    number, bracket, rest = path[1:].partition("]")
    return f"[{int(number) + before}{bracket}{rest}" if before else path


def _type(x: Any) -> ShapedArray:
    if isinstance(x, (bool, int, float, complex)):
        return aval_of(x)
    return ShapedArray(tuple(x.shape), dtypes.canonicalize(x.dtype))


def _mismatch(one: str, a: PyTreeDef, other: str, b: PyTreeDef) -> str:
    found = list(equality_errors_pytreedef(a, b))
    lines = [f"Pytree for `{one}` and `{other}` do not match. There are {len(found)} mismatches, including:"]
    a_ = lambda kind: f"a {kind.removeprefix('a ')}"
    for path, x, y, why in found:
        where = f"at {keystr(path)}, " if path else ""
        lines.append(f"    * {where}`{one}` is {a_(x)} but `{other}` is {a_(y)}, so {why}")
    return "\n".join(lines)
