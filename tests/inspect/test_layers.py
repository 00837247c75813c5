"""The layered layout: boxes don't overlap, edges go down, and the cost is about linear."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest

from polyax_inspect.layers import Edge, Layout, arrange

Sizes = list[tuple[float, float]]


def random_graph(seed: int, count: int) -> tuple[Sizes, list[Edge]]:
    numbers = random.Random(seed)
    sizes = [(numbers.uniform(20, 200), numbers.uniform(20, 80)) for _ in range(count)]
    edges = [Edge(numbers.randrange(max(0, n - 9), n), n, n) for n in range(1, count) for _ in range(2)]
    return sizes, edges


def overlapping(sizes: Sizes, layout: Layout) -> list[tuple[int, int]]:
    boxes = [(x - w / 2, y, x + w / 2, y + h) for (x, y), (w, h) in zip(layout.places, sizes)]
    return [
        (i, j)
        for i, a in enumerate(boxes)
        for j, b in enumerate(boxes[:i])
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


@pytest.mark.parametrize("seed", range(5))
def test_boxes_stand_apart_and_inside(seed: int) -> None:
    sizes, edges = random_graph(seed, 60)
    layout = arrange(sizes, edges)
    assert not overlapping(sizes, layout)
    for (x, y), (w, h) in zip(layout.places, sizes):
        assert x - w / 2 >= -1e-6 and x + w / 2 <= layout.width + 1e-6
        assert y >= 0 and y + h <= layout.height + 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_edges_go_down(seed: int) -> None:
    sizes, edges = random_graph(seed, 60)
    layout = arrange(sizes, edges)
    for e, bends in zip(edges, layout.bends):
        below = [layout.places[e.source][1] + sizes[e.source][1], *(y for _, y in bends), layout.places[e.target][1]]
        assert all(a <= b + 1e-6 for a, b in pairwise(below))


def test_a_chain_is_straight() -> None:
    layout = arrange([(40, 20)] * 30, [Edge(n, n + 1, n) for n in range(29)])
    assert len({round(x, 3) for x, _ in layout.places}) == 1


def test_a_diamond_is_symmetric() -> None:
    layout = arrange([(40, 20)] * 4, [Edge(0, 1, 0), Edge(0, 2, 0), Edge(1, 3, 1), Edge(2, 3, 2)])
    (top, left, right, bottom) = (x for x, _ in layout.places)
    assert top == pytest.approx(bottom) == pytest.approx((left + right) / 2)


def test_first_and_last_rows() -> None:
    edges = [Edge(0, 1, 0), Edge(1, 2, 1), Edge(0, 3, 0), Edge(4, 2, 4)]
    layout = arrange([(10, 10)] * 5, edges, first=[0, 4], last=[2, 3])
    rows = [y for _, y in layout.places]
    assert rows[0] == rows[4] == min(rows) and rows[2] == rows[3] == max(rows)


def test_nothing_at_all() -> None:
    assert arrange([], []) == Layout([], [], 0.0, 0.0)


def seconds(count: int) -> float:
    sizes, edges = random_graph(0, count)
    began = time.thread_time()
    arrange(sizes, edges)
    return time.thread_time() - began


def test_the_cost_is_about_linear() -> None:
    small, large = (min(seconds(n) for _ in range(3)) for n in (300, 2400))
    assert large < 8 * small * 3
