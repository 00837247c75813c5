"""Steps that one native call runs for all members of a group."""

from __future__ import annotations

import numpy as np
import pytest

import polyax
from polyax_cpu import executable, pool
from polyax_cpu.steps import ITEM_COST, MOST, PIECE_COST, Table, copying, piece_of, piece_of_library
from polyax_kernels.plan.plan import Ref
from polyax_kernels.run.memory import Pool

SIZE, LONG = 1000, PIECE_COST
MEMBERS = 0, 3, 4


def _bases(pool: Pool, contents: np.ndarray) -> list:
    """A source, nothing, and two targets."""
    source, *targets = (pool.empty(contents.nbytes) for _ in range(3))
    source.array(contents.shape, contents.dtype)[...] = contents
    return [source, None, *targets]


def _copies(cost: int = LONG, members: int = 8) -> Table:
    steps = [copying(Ref(a), Ref(b), SIZE, divides=False) for a, b in ((0, 2), (2, 3))]
    return Table(steps, cost, members)


def test_each_member_has_its_own_memory() -> None:
    """Those that have come are done, in the order of the steps."""
    pool, rng = Pool(), np.random.default_rng(0)
    contents = {n: rng.integers(0, 256, SIZE, np.uint8) for n in MEMBERS}
    members = {n: _bases(pool, x) for n, x in contents.items()}
    table = _copies()
    assert table.stops and table.of_all(members, ()) == list(MEMBERS)
    for n, bases in members.items():
        assert (bases[3].array((SIZE,), np.uint8) == contents[n]).all()


def test_who_has_no_memory_is_an_error() -> None:
    x = np.zeros(SIZE, np.uint8)
    members = {0: _bases(Pool(), x), 1: ["nothing", *_bases(Pool(), x)[1:]]}
    with pytest.raises(AttributeError, match="pointer"):
        _copies().of_all(members, ())


def test_short_steps_and_those_of_one_device_are_not_waited_for() -> None:
    assert not _copies(LONG, members=1).stops and not _copies(LONG // 8).stops


def test_long_steps_have_pieces_for_late_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "thread_count", lambda: 2)
    pieces = [piece_of(cost, 2048) for cost in (1, 2 * PIECE_COST, 100 * PIECE_COST)]
    assert pieces == [2048, 1024, 2048 // (2 * MOST)]
    assert piece_of(100 * PIECE_COST, 2048, most=1) == 1024


@pytest.mark.parametrize("axis, most", [(0, 1), (1, MOST)])
def test_strips_of_rows_are_no_more_than_threads(axis: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(executable, "piece_of", lambda *args: asked.append(args[-1]) or piece_of(*args))
    x = np.random.default_rng(0).standard_normal((3000, 2000)).astype(np.float32)
    found = polyax.jit(lambda x: x.max(axis), device=polyax.devices("cpu")[0])(x)
    np.testing.assert_array_equal(found, x.max(axis))
    assert asked == [most]


def test_long_items_of_libraries_are_shared_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short ones lie in whole lines: only one thread writes to each."""
    monkeypatch.setattr(pool, "thread_count", lambda: 2)
    assert piece_of_library(192 * 2 * ITEM_COST, 192) == 96
    assert piece_of_library(192, 192) == 128
    assert piece_of_library(ITEM_COST * 10, 1) == 1
