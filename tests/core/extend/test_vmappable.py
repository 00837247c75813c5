"""Nodes of pytrees that say themselves how ``vmap`` maps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import polyax as jax
import polyax.numpy as jnp
from polyax.interpreters import batching


class Flow(NamedTuple):
    """What is different in each example, and what all share."""

    own: Any
    shared: Any


@pytest.fixture
def flows_are_mapped() -> Iterator[None]:
    def to_elt(cont, _, flow, axis):
        return Flow(cont(flow.own, axis), flow.shared)

    def from_elt(cont, size, flow, axis):
        return Flow(cont(size, flow.own, axis), flow.shared)

    batching.register_vmappable(Flow, int, int, to_elt, from_elt, None)
    yield
    batching.unregister_vmappable(Flow)


@pytest.mark.parametrize("apply", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_nodes_say_which_of_their_leaves_are_mapped(flows_are_mapped: None, apply: Callable) -> None:
    flow = Flow(jnp.arange(6.0).reshape(2, 3), jnp.arange(5.0))
    f = apply(jax.vmap(lambda f, y: Flow(f.own * y + f.shared.sum(), f.shared + 1), in_axes=(1, 0), out_axes=1))
    found = f(flow, jnp.arange(3.0))
    np.testing.assert_array_equal(found.own, flow.own * np.arange(3) + 10)
    np.testing.assert_array_equal(found.shared, np.arange(5) + 1)


def test_nodes_that_are_passed_whole_are_not_asked(flows_are_mapped: None) -> None:
    found = jax.vmap(lambda f, y: f.own * y, in_axes=(None, 0))(Flow(2.0, jnp.ones(3)), jnp.arange(3.0))
    np.testing.assert_array_equal(found, [0, 2, 4])


def test_axes_of_nodes_are_numbers() -> None:
    with pytest.raises(NotImplementedError, match="register_vmappable of Flow: in_axes and sizes are of type int"):
        batching.register_vmappable(Flow, str, int, lambda *_: None, lambda *_: None, None)
