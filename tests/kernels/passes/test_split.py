"""Large folds are cut into chunks: of equal size where that can be, as many as fill the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import polyax
import polyax.numpy as jnp
from polyax.ir.aval import ShapedArray
from polyax.runtime.contract.backend import CompileOptions
from polyax_kernels.ir.expr import Axis, consing, const, fold, index, load
from polyax_kernels.ir.limits import Limits
from polyax_kernels.passes.split import RESIDENT, Chunks, cut

F32 = np.dtype("float32")
HOST = Limits()
GPU = Limits(lanes=1, threads=1024, group=256, units=132)


def total(shape: Sequence[int], kept: Sequence[int] = (), limits: Limits = HOST) -> Chunks | None:
    """How the sum over all dimensions of an array but those ``kept`` is cut."""
    axes = [Axis(n) for n in shape]
    grid, summed = [axes[n] for n in kept], tuple([a for n, a in enumerate(axes) if n not in kept])
    with consing():
        x = fold("add", summed, (const(0.0, F32),), (load(0, F32, tuple(index(a) for a in axes)),))
        return cut(x, grid, limits, [ShapedArray(tuple(shape), F32)])


@pytest.mark.parametrize("shape", [(500, 500), (250_000,), (1000, 1000), (3 * 7 * 11 * 1000,), (3, 1 << 20)])
@pytest.mark.parametrize("limits", [HOST, GPU])
def test_chunks_leave_nothing_where_they_can_be_equal(shape: tuple[int, ...], limits: Limits) -> None:
    found = total(shape, limits=limits)
    assert found is not None
    assert isinstance(found.axis.extent, int)
    assert found.axis.extent % found.number == 0
    if limits is HOST:
        assert int(np.prod(shape)) // found.number >= limits.split_elements // 2


@pytest.mark.parametrize(("prime", "limits"), [(1_000_003, HOST), (100_000_007, GPU), (10_007, GPU)])
def test_chunks_of_what_has_no_divisors_leave_little(prime: int, limits: Limits) -> None:
    found = total((prime, 100), limits=limits)
    assert found is not None
    assert prime % found.number < found.number // 8


@pytest.mark.parametrize("extent", [2, 1000, HOST.split_elements])
def test_small_folds_stay_whole(extent: int) -> None:
    assert total((extent,)) is None


@pytest.mark.parametrize("extent", [2, 1000, 8000])
def test_folds_for_one_group_stay_whole(extent: int) -> None:
    assert total((extent,), limits=GPU) is None


def test_groups_fill_the_device_where_elements_lie_side_by_side() -> None:
    for shape, kept in (((100_000_000,), ()), ((10_000, 10_000), ()), ((16, 10_000_000), (0,))):
        found = total(shape, kept, GPU)
        assert found is not None
        groups = found.number * int(np.prod([shape[n] for n in kept]))
        assert 0.7 * GPU.units * RESIDENT < groups * GPU.group <= GPU.units * RESIDENT


def test_threads_fill_the_device_where_elements_lie_across() -> None:
    found = total((10_000, 10_000), (1,), GPU)
    assert found is not None
    assert 0.7 * GPU.units * RESIDENT < found.number * 10_000 <= GPU.units * RESIDENT
    assert total((10_000, 10_000), (0,), GPU) is None, "each row is a group's work"


def test_rows_enough_for_all_threads_stay_whole() -> None:
    assert total((1000, 100_000), (1,), GPU) is None
    assert total((1000, 100_000), (1,), HOST) is None


def test_columns_that_a_thread_computes_together_are_one_chunk() -> None:
    """They count as its work, and threads that are alone have no others to share them with."""
    few = total((HOST.split_elements, 4), (1,))
    assert few is not None
    assert few.number == 4
    most = total((1 << 20, 16), (1,))
    assert most is not None
    assert most.number == HOST.split_chunks
    assert total((HOST.split_elements, 4), (0,)) is None
    assert total((HOST.split_elements, 64), (1,)) is None


def test_short_rows_that_lie_apart_are_read_in_order() -> None:
    """Each step from row to row is a chunk, so that a thread goes through memory, not over it."""
    found = total((118, 236, 354), (1,))
    assert found is not None
    assert (found.axis.extent, found.number) == (118, 118)
    for shape in ((118, 236, 1024), (1180, 236, 35), (8, 236, 354)):  # rows of a page, of few elements; a small array
        assert total(shape, (1,)) is None
    assert total((118, 236, 354), (0,)) is None, "rows follow each other"
    shared = total((118, 236, 354), (1,), GPU)
    assert shared is not None
    assert shared.number < 118, "threads that share rows hide how far it is to the next"


def test_chunks_of_one_step_fold_the_rest() -> None:
    x = np.random.default_rng(0).normal(size=(300, 45, 80)).astype(F32)
    with polyax.default_device("cpu"):
        device = polyax.devices("cpu")[0]
        program = polyax.make_jaxpr(lambda x: x.sum((0, 2)))(x)
        assert len(device.backend.compile(program, CompileOptions(device)).report().kernels) == 2
    for name in ("sum", "max", "var"):
        got = polyax.jit(lambda x, name=name: getattr(jnp, name)(x, (0, 2)))(x)
        np.testing.assert_allclose(got, getattr(x.astype(float), name)((0, 2)), rtol=1e-4, atol=1e-3)
