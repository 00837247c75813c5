"""The oracle: programs without control flow, calls and rules. Loops are Python loops; of branches all are computed.

Loops whose length depends on values run as often as any random program does, and keep what they have once they end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from types import SimpleNamespace
from typing import Any

LONGEST = 6
"""Steps of a ``while_loop``."""

Function = Callable[..., Any]


class Plain:
    """What stands for ``lax`` and ``jax`` in plain programs on arrays of ``module``."""

    def __init__(self, module: Any) -> None:
        self.module, self.np = module, module.numpy
        self.tree = module.tree_util.tree_map

    def namespace(self) -> dict[str, Any]:
        names = ("cond", "switch", "scan", "while_loop", "fori_loop", "map", "associative_scan")
        lax = Overlaid(self.module.lax, {name: getattr(self, name) for name in names})
        same = lambda g, **_: g
        jax = SimpleNamespace(jit=same, checkpoint=same, vmap=self.vmap, jvp=self.module.jvp, grad=self.module.grad)
        return {"jax": jax, "lax": lax, "own_jvp": same, "own_vjp": same}

    def cond(self, pred: Any, true: Function, false: Function, *args: Any) -> Any:
        return self.tree(lambda a, b: self.np.where(pred, a, b), true(*args), false(*args))

    def switch(self, index: Any, branches: list[Function], *args: Any) -> Any:
        index, outs = self.np.clip(index, 0, len(branches) - 1), [b(*args) for b in branches]
        choose = lambda *cases: reduce(lambda a, n: self.np.where(index == n, cases[n], a), range(len(cases)), cases[0])
        return self.tree(choose, *outs)

    def scan(self, f: Function, init: Any, xs: Any, length: int | None = None, reverse: bool = False, **_: Any) -> Any:
        tree = self.module.tree_util
        n = length if length is not None else tree.tree_leaves(xs)[0].shape[0]
        carry, ys = init, []
        for k in reversed(range(n)) if reverse else range(n):
            carry, y = f(carry, self.tree(lambda x, k=k: x[k], xs))
            ys.append(y)
        if not n:
            return init, self.none(lambda: f(init, self.tree(lambda x: self.np.zeros(x.shape[1:], x.dtype), xs))[1])
        return carry, self.stacked(ys[::-1] if reverse else ys)

    def none(self, fun: Function) -> Any:
        """No slices of what ``fun`` gives."""
        return self.tree(lambda y: self.np.zeros((0, *y.shape), y.dtype), self.module.eval_shape(fun))

    def stacked(self, parts: list[Any]) -> Any:
        return self.tree(lambda *p: self.np.stack(p), *parts)

    def while_loop(self, test: Function, body: Function, val: Any) -> Any:
        for _ in range(LONGEST):
            val = self.tree(lambda new, old: self.np.where(test(val), new, old), body(val), val)  # noqa: B023
        return val

    def fori_loop(self, lower: int, upper: Any, body: Function, val: Any, **_: Any) -> Any:
        for i in range(lower, lower + LONGEST):
            val = self.tree(lambda new, old: self.np.where(i < upper, new, old), body(i, val), val)  # noqa: B023
        return val

    def map(self, f: Function, xs: Any, batch_size: int | None = None) -> Any:
        return self.scan(lambda _, x: ((), f(x)), (), xs)[1]

    def vmap(self, f: Function, in_axes: Any) -> Function:
        def mapped(*args: Any) -> Any:
            size = next(x.shape[a] for x, a in zip(args, in_axes) if a is not None)
            at = lambda n: [x if a is None else self.np.moveaxis(x, a, 0)[n] for x, a in zip(args, in_axes)]
            return self.stacked([f(*at(n)) for n in range(size)])

        return mapped

    def associative_scan(self, f: Function, x: Any, reverse: bool = False) -> Any:
        return self.scan(lambda c, x: (f(c, x),) * 2, x[-1] * 0, x, reverse=reverse)[1]


class Overlaid:
    """A module of which some names mean something else."""

    def __init__(self, module: Any, names: dict[str, Any]) -> None:
        self.__dict__.update(names)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)
