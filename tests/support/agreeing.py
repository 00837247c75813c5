"""A function of the library against another one: values in float64, compiled, mapped and differentiated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import polyax
from polyax.test_util import check_grads


@dataclass(frozen=True)
class Agreeing:
    """``fun(*args)`` has to be ``oracle(*args)``.

    ``order`` is that of the derivatives to check; ``whole`` lists arguments that ``vmap`` doesn't map.
    """

    fun: Callable[..., Any]
    oracle: Callable[..., Any]
    args: tuple[Any, ...]
    order: int = 2
    whole: tuple[int, ...] = ()

    def check(self) -> None:
        with polyax.enable_x64(True):
            self._values()
            self._mapped()
            self._derivatives()

    def _values(self) -> None:
        want = self.oracle(*self.args)
        same(self.fun(*self.args), want)
        same(polyax.jit(self.fun)(*self.args), want)

    def _mapped(self) -> None:
        chosen = [n for n in range(len(self.args)) if n not in self.whole]
        if not chosen:
            return
        rows = [list(self.args), list(self.args)]
        for n in chosen:
            rows[1][n] = np.flip(np.asarray(self.args[n])).astype(np.asarray(self.args[n]).dtype)
        stacked = [np.stack([r[n] for r in rows]) if n in chosen else x for n, x in enumerate(self.args)]
        axes = [0 if n in chosen else None for n in range(len(self.args))]
        for n, row in enumerate(rows):
            mapped = polyax.vmap(self.fun, in_axes=tuple(axes))(*stacked)
            same(polyax.tree.map(lambda x, n=n: x[n], mapped), self.fun(*row))

    def _derivatives(self) -> None:
        inexact = [n for n, x in enumerate(self.args) if np.asarray(x).dtype.kind in "fc"]
        if not inexact or not self.order:
            return

        def fun(*xs: Any) -> Any:
            args = list(self.args)
            for n, x in zip(inexact, xs, strict=True):
                args[n] = x
            return self.fun(*args)

        check_grads(fun, tuple(self.args[n] for n in inexact), self.order, modes=("fwd", "rev"))


def agreeing(fun: Callable[..., Any], oracle: Callable[..., Any], *args: Any, **how: Any) -> Agreeing:
    return Agreeing(fun, oracle, args, **how)


def same(got: Any, want: Any) -> None:
    got, want = (x if isinstance(x, (tuple, list)) else [x] for x in (got, want))
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-9, atol=1e-9)
