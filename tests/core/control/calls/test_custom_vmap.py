"""``custom_vmap`` and ``sequential_vmap``: rules that differ from the true map, so that a test sees which was used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.custom_batching import custom_vmap, sequential_vmap

X = np.arange(1.0, 4.0, dtype=np.float32)


def told() -> Any:
    """x + y, of which ``vmap`` is told that it is 10 x + y."""

    @custom_vmap
    def f(x: Any, y: Any) -> Any:
        return x + y

    f.def_vmap(lambda size, mapped, x, y: (10 * x + y, mapped[0] | mapped[1]))
    return f


TRANSFORMED = {
    "vmap": (lambda f: polyax.vmap(f)(X, X), 11 * X),
    "one mapped argument": (lambda f: polyax.vmap(f, (None, 0))(1.0, X), 10 + X),
    "jit of vmap": (lambda f: polyax.jit(polyax.vmap(f))(X, X), 11 * X),
    "vmap of jit": (lambda f: polyax.vmap(polyax.jit(f), (0, None))(X, 1.0), 10 * X + 1),
    "jvp of vmap": (lambda f: polyax.jvp(lambda x: polyax.vmap(f)(x, X), (X,), (X,))[1], 10 * X),
    "vmap of jvp": (lambda f: polyax.vmap(lambda x: polyax.jvp(f, (x, 1.0), (1.0, 0.0))[1])(X), [10, 10, 10]),
    "grad of vmap": (lambda f: polyax.grad(lambda x: polyax.vmap(f)(x, X).sum())(X), [10, 10, 10]),
    "names": (lambda f: polyax.vmap(lambda x: f(y=x, x=2.0))(X), 20 + X),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_the_rule_is_used_in(name: str) -> None:
    run, wanted = TRANSFORMED[name]
    np.testing.assert_allclose(run(told()), wanted)


def test_without_vmap_the_function_runs() -> None:
    assert told()(1.0, 2.0) == 3.0
    assert polyax.grad(told())(1.0, 2.0) == 1.0
    assert polyax.jit(told())(1.0, 2.0) == 3.0


def test_rules_that_do_not_fit() -> None:
    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function sin using def_vmap"):
        custom_vmap(jnp.sin)(1.0)
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, mapped, x: x)
    with pytest.raises(TypeError, match="must return a pair of results and out_batched"):
        polyax.vmap(f)(X)
    f.def_vmap(lambda size, mapped, x: (x, (True,)))
    with pytest.raises(ValueError, match="structure of output value and output batching specification"):
        polyax.vmap(f)(X)


@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_sequential_maps_agree_with_vmap(axes: Any) -> None:
    f = lambda x, y: jnp.sin(x) * y
    args = [X if a == 0 else np.float32(2) for a in axes]
    looped = polyax.vmap(sequential_vmap(f), axes)
    np.testing.assert_allclose(looped(*args), polyax.vmap(f, axes)(*args), rtol=1e-6)
    total = lambda f: polyax.grad(lambda x, y: jnp.sum(f(x, y)), (0, 1))
    for got, wanted in zip(total(looped)(*args), total(polyax.vmap(f, axes))(*args), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_sequential_maps_are_loops() -> None:
    jaxpr = polyax.make_jaxpr(polyax.vmap(sequential_vmap(jnp.sin)))(X)
    assert [e.primitive.name for e in jaxpr.eqns] == ["scan"]


def test_results_of_another_structure_are_refused() -> None:
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, mapped, x: ((x, x), (True, True)))
    with pytest.raises(ValueError, match="does not match that of original custom-vmapped function"):
        polyax.vmap(polyax.jit(f))(X)


def test_the_rule_must_give_results_like_the_function() -> None:
    f = custom_vmap(lambda x: x)
    f.def_vmap(lambda size, in_batched, x: ((x, x), (True, True)))
    with pytest.raises(ValueError, match=r"(?s)does not match that of original.*Original output: PyTreeDef\(\*\)"):
        polyax.vmap(f)(X)
