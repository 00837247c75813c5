"""The order of nodes that are joined: never a cycle, never a refusal without one, as long as little lies between."""

from __future__ import annotations

import random

import pytest

from polyax_fusion.order import REACH, Order
from support.calls import calls

Needs = list[set[int]]


def leads(needs: Needs, first: int, second: int) -> bool:
    """Whether ``second`` needs ``first``."""
    seen: set[int] = set()
    stack = [second]
    while stack:
        fresh = needs[stack.pop()] - seen
        seen |= fresh
        stack.extend(fresh)
    return first in seen


def contracted(needs: Needs, first: int, second: int) -> Needs:
    """``needs`` with node ``second`` in the place of both."""
    renamed = [{second if m == first else m for m in found} for found in needs]
    renamed[second] = (renamed[second] | renamed[first]) - {first, second}
    renamed[first] = set()
    return renamed


@pytest.mark.parametrize("seed", range(200))
def test_what_can_be_joined_is_joined_and_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randint(2, 12)
    needs: Needs = [{m for m in range(n) if rng.random() < 0.25} for n in range(size)]
    order, alive = Order(needs), set(range(size))
    for _ in range(8):
        if len(alive) < 2:
            break
        first, second = order.running(rng.sample(sorted(alive), 2))
        without_edge = [found - {first} if n == second else found for n, found in enumerate(needs)]
        assert (order.why_not_join(first, second) is not None) == leads(without_edge, first, second)
        if order.why_not_join(first, second) is None:
            order.join(first, second)
            alive.discard(first)
            needs = contracted(needs, first, second)
        running = order.running(alive)
        assert all(running.index(m) < running.index(n) for n in alive for m in needs[n])


def test_nodes_with_too_much_between_them_stay_apart() -> None:
    order = Order([set(), *[{0} for _ in range(REACH + 1)]])
    assert order.why_not_join(0, REACH + 1) == "too many steps lie between them"


def test_joining_a_long_chain_takes_linear_time() -> None:
    def joined(size: int) -> None:
        order = Order([set(), *[{n - 1} for n in range(1, size)]])
        for n in range(1, size):
            assert order.why_not_join(n - 1, n) is None
            order.join(n - 1, n)

    assert calls(lambda: joined(20_000)) < 11 * calls(lambda: joined(2_000))
