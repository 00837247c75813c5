"""Matrix products as calls of GPU backends: the kind of kernel by the device's limits, its tile by a search.

Everything is decided and compiled with the executable; a launch only puts work into the queue.
"""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from polyax.ir.aval import ShapedArray
from polyax_kernels.gpu.products import panels, tiles
from polyax_kernels.gpu.products.product import Dialect, Launch, Product, Recipe, describe
from polyax_kernels.gpu.products.tune import fastest
from polyax_kernels.gpu.runtime import DeviceError, Runtime
from polyax_kernels.gpu.schedule import MOST_GROUPS
from polyax_kernels.ir.limits import Limits
from polyax_kernels.ir.products import MANY, TINY
from polyax_kernels.lower.lowering import Call

Place = tuple[Any, int]
Launches = Callable[[Place, Place, Place], None]
"""Given memory and offsets in bytes of left and right operand and result."""
Run = Callable[[Sequence[Any], Sequence[Any]], None]
Tile = panels.PanelTile | tiles.Tile

SMALL = 2**16
"""Products of fewer multiplications are left to kernels with folds: one launch."""
NARROW = 4
"""So are those of fewer rows or columns, which read most elements only once."""
WORTHWHILE = 2**24
"""Products of fewer multiplications take the default tile."""
ALIKE = 4096
"""Larger sizes change nothing about which tile is the fastest."""
LARGEST = 2**31
"""Indices have 32 bits."""


def by_tiles(product_of: Callable[[Sequence[ShapedArray], Mapping[str, Any]], Product]) -> Call:
    """The call that puts the launches of the product of some operands and parameters into the queue."""

    def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
        if any(a.dtype.kind == "c" for a in avals):
            return "tiles hold no complex numbers"
        return why_no_tiles(product_of(avals, params))

    def prepare(ctx: Any, outs: Sequence[ShapedArray], args: Sequence[ShapedArray], params: Mapping[str, Any]) -> Run:
        return ready(ctx, product_of(args, params), outs, args)

    return Call(prepare=prepare, why_not=why_not, operands="device")


def why_no_tiles(product: Product) -> str | None:
    """Why a product is left to a kernel."""
    if not product.flops:
        return "the product is empty"
    if product.flops < 2 * SMALL:
        return "a small product is one kernel"
    if min(product.m, product.n) < NARROW:
        return "a product with few rows or columns is a kernel of folds"
    if product.batch > MOST_GROUPS or (product.batch > MANY and max(product.m, product.n, product.k) <= TINY):
        return "many small products are one kernel"
    most = max(product.batch, product.m, product.n, product.k)
    return "an index has more than 31 bits" if most >= LARGEST else None


def ready(ctx: Any, product: Product, outs: Sequence[ShapedArray], args: Sequence[ShapedArray]) -> Run:
    """``run(outs, args)`` for views of arrays, with the fastest tile for products like this one."""
    nbytes = [a.nbytes for a in (*(args[n] for n in product.order), *outs)]
    run_on = launches(ctx, product, _tile(ctx.runtime, product, stopwatch(ctx, product, nbytes)))
    left, right = product.order

    def run(outs: Sequence[Any], args: Sequence[Any]) -> None:
        run_on(args[left][:2], args[right][:2], outs[0][:2])

    return run


def launches(ctx: Any, product: Product, tile: Tile) -> Launches:
    """Compiles what computes the product with a tile."""
    runtime: Runtime = ctx.runtime
    written = recipe(product, tile, ctx.dialect, runtime.limits.units)
    steps = [(_loaded(runtime, launch), launch) for launch in written.launches]

    def run(left: Place, right: Place, out: Place) -> None:
        places: dict[str, Place] = {"left": left, "right": right, "out": out}
        for name, nbytes in written.scratch.items():
            places[name] = ctx.allocate(nbytes), 0
        for function, launch in steps:
            operands = [places[name] for name in launch.operands]
            runtime.launch(function, launch.groups, launch.threads, operands, launch.scalars)

    return run


def recipe(product: Product, tile: Tile, dialect: Dialect, units: int) -> Recipe:
    """The launches for a device of so many compute units."""
    if isinstance(tile, tiles.Tile):
        return tiles.recipe(product, tile, dialect)
    return panels.recipe(product, tile, dialect, units)


_functions: weakref.WeakKeyDictionary[Runtime, dict[str, Any]] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def _loaded(runtime: Runtime, launch: Launch) -> Any:
    """Compiled once per device."""
    with _lock:
        known = _functions.setdefault(runtime, {})
        if launch.source not in known:
            known[launch.source] = runtime.load(launch.source, launch.name)
        return known[launch.source]


# --- the tile ---------------------------------------------------------------------------------------------------------


def _tile(runtime: Runtime, product: Product, seconds: Callable[[Tile], float]) -> Tile:
    """The fastest tile for products like this one on this device."""
    candidates = candidate_tiles(runtime.limits, product.accumulator)
    if product.flops < 2 * WORTHWHILE:
        return candidates[0]
    try:
        return fastest(_key(runtime, product), candidates, seconds)
    except MemoryError:  # the search takes operands of its own
        return candidates[0]


def candidate_tiles(limits: Limits, dtype: np.dtype) -> Sequence[Tile]:
    """Those that the device has room for; the first one is the default."""
    if limits.group == 1:
        return panels.candidates(limits)
    return [t for t in tiles.CANDIDATES if tiles.fits(t, dtype, limits)] or [tiles.SMALLEST]


def _key(runtime: Runtime, product: Product) -> str:
    """The device and the class of a product: dtypes, layouts, and sizes to within a factor of four."""
    layouts = [m.along_depth for m in (product.left, product.right)]
    sizes = [min(x, ALIKE).bit_length() // 2 for x in (product.m, product.n, product.k)]
    limits = runtime.limits
    device = runtime.kind, limits.units, limits.threads, limits.group, limits.local_bytes, limits.vector_bytes
    return f"{device} {product.operands} {product.result} {layouts} {product.batch > 1} {sizes}"


def stopwatch(ctx: Any, product: Product, nbytes: Sequence[int]) -> Callable[[Tile], float]:
    """Gives the seconds that a product of zeros takes with a tile; infinity if the device refuses it."""
    runtime: Runtime = ctx.runtime
    places: list[Place] = []
    runs: dict[Tile, Launches] = {}

    def seconds(tile: Tile) -> float:
        if not places:
            places.extend(_zeros(runtime, n) for n in nbytes)
        try:
            if tile not in runs:
                runs[tile] = launches(ctx, product, tile)
            runtime.synchronize()
            started = time.perf_counter()
            runs[tile](*places)
            runtime.synchronize()
            return time.perf_counter() - started
        except DeviceError:
            return math.inf

    return seconds


def _zeros(runtime: Runtime, nbytes: int) -> Place:
    memory = runtime.allocate(nbytes)
    runtime.write(memory, 0, np.zeros(nbytes, np.uint8))
    return memory, 0


PRODUCT = by_tiles(lambda avals, p: describe(avals, p.get("preferred_element_type") or avals[0].dtype, p))
