"""What the walker must know of a kernel's expressions: the axes and the memory that each depends on.

Sets of axes and of operands are bit masks. Pure analysis: nothing is emitted or rewritten here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from polyax_kernels.ir.expr import PICKS, Axis, Expr, Fold, postorder
from polyax_kernels.ir.kernel import Kernel, Stage, Store, kernel_roots, store_roots

Levels = list[tuple[Expr, int]]
"""Expressions, operands first, with the number of loops that must be open to evaluate each."""


class Facts:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.axes: dict[Expr, int] = {}
        """The axes whose indices an expression depends on."""
        self.reads: dict[Expr, int] = {}
        """The operands that it reads and that the kernel writes."""
        self._bits: dict[Axis, int] = {}
        self._outer: dict[Expr, tuple[Expr, ...]] = {}
        self._levels: dict[int, Levels] = {}
        self._stored = mask(store.slot for stage in kernel.stages for store in stage.stores)
        nests = (kernel.grid, *(stage.axes for stage in kernel.stages))
        symbolic = [axis.extent for nest in nests for axis in nest if isinstance(axis.extent, Expr)]
        for x in postorder_with_extents((*kernel_roots(kernel), *symbolic)):
            self._learn(x)

    def bit(self, axis: Axis) -> int:
        return self._bits.setdefault(axis, 1 << len(self._bits))

    def _learn(self, x: Expr) -> None:
        axes, reads = 0, 0
        for a in parts(x):
            axes |= self.axes[a]
            reads |= self.reads[a]
        if x.kind == "index":
            axes = self.bit(x.attr)
        elif x.kind == "load":
            reads |= (1 << x.attr.slot) & self._stored
        elif x.kind == "fold":
            axes = union(self.axes[a] for a in inits(x)) | axes & ~self.bound(x.attr)
        self.axes[x], self.reads[x] = axes, reads

    def bound(self, fold: Fold) -> int:
        return union(map(self.bit, fold.axes))

    def bound_by(self, folds: Iterable[Expr]) -> int:
        return union(self.bound(x.attr) for x in folds)

    def outer(self, fold: Expr) -> tuple[Expr, ...]:
        """What must be known before the loop of ``fold`` opens: initial values, and what doesn't depend on its axes."""
        if fold not in self._outer:
            bound = self.bound(fold.attr)
            free = [x for x in self.needed(bodies(fold), bound) if not self.axes[x] & bound]
            self._outer[fold] = (*inits(fold), *extents(fold), *free)
        return self._outer[fold]

    def needed(self, roots: Iterable[Expr], bound: int = -1) -> list[Expr]:
        """The expressions that evaluate ``roots`` outside the loops of folds, operands first.

        Below those that don't depend on the axes ``bound`` nothing is looked for.
        """
        return _walked(roots, lambda x: self.operands(x) if bound == -1 or self.axes[x] & bound else ())

    def operands(self, x: Expr) -> tuple[Expr, ...]:
        """What must be known before ``x`` is evaluated."""
        return self.outer(x) if x.kind == "fold" else x.args

    def levels(self, stage: Stage) -> Levels:
        """What ``stage`` evaluates; the loops are the grid's and then its own.

        Memory that the kernel writes is read inside the grid, and what the stage itself writes, innermost.
        """
        if id(stage) not in self._levels:
            self._levels[id(stage)] = self._compute_levels(stage)
        return self._levels[id(stage)]

    def _compute_levels(self, stage: Stage) -> Levels:
        grid = self.kernel.grid
        path, written = (*grid, *stage.axes), self.written(stage)
        roots = [x for store in stage.stores for x in store_roots(store)]
        result: Levels = []
        for x in self.needed(roots):
            least = len(path) if self.reads[x] & written else len(grid) if self.reads[x] else 0
            result.append((x, max(least, self.depth(x, path))))
        return result

    def inside(self, folds: Sequence[Expr]) -> Levels:
        """What is evaluated inside the loops of folds over the same axes; level 1 is the first axis."""
        axes = folds[0].attr.axes
        bound = self.bound(folds[0].attr)
        nodes = self.needed([b for x in folds for b in bodies(x)], bound)
        return [(x, self.depth(x, axes)) for x in nodes if self.axes[x] & bound]

    def depth(self, x: Expr, path: Sequence[Axis]) -> int:
        return next((n for n in range(len(path), 0, -1) if self.axes[x] & self.bit(path[n - 1])), 0)

    def folds(self, stage: Stage) -> bool:
        """Whether a fold runs inside the innermost loop of ``stage``."""
        depth = len(self.kernel.grid) + len(stage.axes)
        return any(x.kind == "fold" and level == depth for x, level in self.levels(stage))

    def written(self, stage: Stage) -> int:
        return mask(store.slot for store in stage.stores)

    def independent(self, stage: Stage) -> bool:
        """Whether the iterations of the innermost loop can run in any order: what it reads back, it wrote itself."""
        path = (*self.kernel.grid, *stage.axes)
        if self.kernel.ordered or not path:
            return False
        return all(self._apart(store, stage, self.bit(path[-1])) for store in stage.stores)

    def _apart(self, store: Store, stage: Stage, innermost: int) -> bool:
        """Whether each iteration of the innermost loop has a place of ``store`` for itself, and reads no other one."""
        at, slot = store.indices[0], 1 << store.slot
        nodes = [x for x, _ in self.levels(stage) if self.reads[x] & slot]
        loads = [x for x in nodes if x.kind == "load" and x.attr.slot == store.slot]
        if any(x.kind == "fold" for x in nodes) or any(x.args[0] is not at for x in loads):
            return False
        shared = loads or store.combine or self.kernel.operands[store.slot].role == "local"
        return bool(self.axes[at] & innermost) or not shared


def goes_on(stage: Stage) -> bool:
    """Whether a stage reads back what it wrote at another place, as running sums do."""
    loads = [x for store in stage.stores for x in postorder(*store_roots(store)) if x.kind == "load"]
    return any(x.attr.slot == s.slot and _elsewhere(x, s) for s in stage.stores for x in loads)


def _elsewhere(load: Expr, store: Store) -> bool:
    return any(a is not b for a, b in zip(load.args, store.indices, strict=False))


def inits(fold: Expr) -> tuple[Expr, ...]:
    """The values that the carries start with."""
    return fold.args[: len(fold.args) // 2]


def bodies(fold: Expr) -> tuple[Expr, ...]:
    """What is combined with the carries."""
    return fold.args[len(fold.args) // 2 :]


def mask(positions: Iterable[int]) -> int:
    return union(1 << n for n in positions)


def union(masks: Iterable[int]) -> int:
    total = 0
    for m in masks:
        total |= m
    return total


def extents(fold: Expr) -> list[Expr]:
    return [axis.extent for axis in fold.attr.axes if isinstance(axis.extent, Expr)]


def parts(x: Expr) -> Sequence[Expr]:
    return (*x.args, *extents(x)) if x.kind == "fold" else x.args


def postorder_with_extents(roots: Iterable[Expr]) -> list[Expr]:
    """Every distinct node once, operands first, symbolic extents of folds among them."""
    return _walked(roots, parts)


def _walked(roots: Iterable[Expr], below: Callable[[Expr], Sequence[Expr]]) -> list[Expr]:
    """Every distinct node once, those ``below`` it first."""
    done: dict[Expr, None] = {}
    stack = list(roots)
    while stack:
        todo = [] if stack[-1] in done else [a for a in below(stack[-1]) if a not in done]
        if todo:
            stack.extend(todo)
        else:
            done.setdefault(stack.pop())
    return list(done)


def rounds(nodes: Iterable[Expr], wanted: Callable[[Expr], bool]) -> list[list[Expr]]:
    """The folds of ``nodes`` that are ``wanted``, in an order in which they can run, those together that can share
    loops: over the same axes, none of which needs another's result."""
    rank: dict[Expr, int] = {}
    groups: dict[tuple[int, tuple[Axis, ...], bool], list[Expr]] = {}
    for x in nodes:
        own = x.kind == "fold" and wanted(x)
        rank[x] = max((rank[a] for a in x.args), default=0) + own
        if own:
            groups.setdefault((rank[x], x.attr.axes, x.attr.combine in PICKS), []).append(x)
    return [groups[key] for key in sorted(groups, key=lambda key: key[0])]
