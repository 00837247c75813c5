"""Convolutions in which few terms meet many places: not products of BLAS, but sums in registers.

A part of an image is copied to planes, one for each channel, with the zeros around it. In planes an element of the
window meets what lies equally far behind each place of the result: rows follow each other, and are as much longer than
those of the result as the window is wider than one. What is computed there is left out. Where the window moves in
steps, each residue has a plane of its own. Where the operand is dilated, each phase of the result is a convolution with
a part of the window, whose results lie apart.

Knows shapes and numbers; the code is in ``blocks``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from polyax.ir.aval import ShapedArray
from polyax.ops.conv import conv_general_dilated_p
from polyax_cpu.convolutions.tiles import strides
from polyax_kernels.lower import phases

SPATIAL = 3
"""Dimensions of images in native code; those that an image lacks have one place."""
LINE = 16
"""Elements that vectors read and write behind rows, at most."""
REACH = 8 * LINE
"""Elements that blocks read and write behind the last place, at most."""
ELEMENTS = 1 << 16
"""Of planes and sums that stay in a core's cache."""
ITEMS = 8
"""Parts that threads may share, if they are not small."""
SMALL = 512
"""Places of a part that isn't cut for threads alone."""

FEW = 64
"""Places of results for which packing weights takes too long."""
MANY, TOGETHER = 2048, 32
"""Weights of a group at each place of the window, and features that are together in memory, for which small blocks
don't pay."""
USEFUL = 2
"""So many times more places than the result has may be computed."""
TAPS = 512
"""Elements of windows: for each of them there is a number."""


class Along(NamedTuple):
    """One spatial dimension of the operand, of the window and of the result, with the distances of neighbours in their
    memory."""

    source: int = 1
    low: int = 0
    stride: int = 1
    dilation: int = 1
    window: int = 1
    places: int = 1
    by_source: int = 0
    by_weight: int = 0
    by_result: int = 0
    first_tap: int = 0
    by_tap: int = 1
    """The elements of the whole window that this is a part of, by their numbers."""
    first_result: int = 0

    def length(self, places: int) -> int:
        """Of the planes that so many places of the result see."""
        seen = max(0, places - 1) * self.stride + max(0, self.window - 1) * self.dilation + 1
        return -(-seen // self.stride)

    def phases(self, dilation: int) -> Iterator[Along]:
        """Of an operand that is dilated. Those that see nothing have no window."""
        count = phases.count(self.stride, dilation)
        for n in range(min(count, self.places)):
            found = phases.phase(n, self.window, self.stride, self.low, dilation, self.dilation)
            p = found or phases.Phase(self.window, 1, 1, 1, 0)
            yield self._replace(
                low=p.low, stride=p.stride, dilation=p.dilation, window=len(range(p.first, self.window, p.step)),
                places=-(-(self.places - n) // count), by_result=self.by_result * count,
                first_tap=p.first * self.by_tap, by_tap=p.step * self.by_tap, first_result=n * self.by_result,
            )  # fmt: skip


class By(NamedTuple):
    """Distances in the memory of an array."""

    item: int
    group: int
    channel: int


class Shapes:
    """What a convolution's dimensions are, whatever their order."""

    def __init__(self, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> None:
        (self.result,) = conv_general_dilated_p.rule("abstract_eval")(*avals, **params)
        lhs, rhs, out = (a.shape for a in (*avals, self.result))
        at, of, to = params["dimension_numbers"]
        source, weight, result = map(strides, (lhs, rhs, out))
        self.groups = params["feature_group_count"]
        self.batch, self.channels, self.features = out[to[0]], rhs[of[1]], rhs[of[0]] // self.groups
        self.by_source = By(source[at[0]], source[at[1]] * self.channels, source[at[1]])
        self.by_weight = By(0, weight[of[0]] * self.features, weight[of[0]])
        self.by_result = By(result[to[0]], result[to[1]] * self.features, result[to[1]])
        self.weight_by_channel = weight[of[1]]
        by_tap = strides([rhs[j] for j in of[2:]])
        self.along = [
            Along(lhs[i], low, stride, dilation, rhs[j], out[k], source[i], weight[j], result[k], 0, tap)
            for i, j, k, (low, _), stride, dilation, tap in zip(
                at[2:], of[2:], to[2:], params["padding"], params["window_strides"], params["rhs_dilation"], by_tap,
                strict=True,
            )
        ]  # fmt: skip
        each = [list(a.phases(n)) for a, n in zip(self.along, params["lhs_dilation"], strict=True)]
        self.phases = [PlanePhase(along) for along in itertools.product(*each)]

    @property
    def together(self) -> tuple[bool, bool]:
        """Whether channels of the operand are neighbours in memory, and features of the result."""
        last = self.phases[0].along[-1]
        return self.by_source.channel == 1 != last.by_source, self.by_result.channel == 1 != last.by_result

    @property
    def taps(self) -> int:
        """Elements of the whole window."""
        return math.prod(a.window for a in self.along)

    @property
    def places(self) -> int:
        return self.batch * math.prod(a.places for a in self.along)

    @property
    def flops(self) -> int:
        sums = sum(phase.taps * math.prod(a.places for a in phase.along) for phase in self.phases)
        return 2 * self.batch * self.groups * self.features * self.channels * sums


class PlanePhase:
    """A convolution without dilation of its operand: its dimensions in the order of the operand's memory."""

    def __init__(self, along: Sequence[Along]) -> None:
        last = sorted(along, key=lambda a: -a.by_source)
        self.along = (*[Along()] * (SPATIAL - len(last)), *last)

    @property
    def taps(self) -> int:
        """Elements of its part of the window."""
        return math.prod(a.window for a in self.along)

    @property
    def residues(self) -> int:
        """Planes of each channel."""
        return math.prod(a.stride for a in self.along)

    def part(self, cuts: Sequence[int]) -> PlanePart:
        """Of a result that is cut like this, the first one."""
        places = [-(-a.places // n) for a, n in zip(self.along, cuts, strict=True)]
        return PlanePart(tuple(places), tuple(a.length(n) for a, n in zip(self.along, places, strict=True)))

    def window(self, lengths: Sequence[int]) -> Iterator[int]:
        """For each element how far behind the first place that it sees it is in planes, and its number."""
        by_place, steps = strides(lengths), [a.stride for a in self.along]
        by_residue = [n * math.prod(lengths) for n in strides(steps)]
        for element in itertools.product(*(range(a.window) for a in self.along)):
            moved = [k * a.dilation for k, a in zip(element, self.along, strict=True)]
            yield sum(
                n % step * residue + n // step * place
                for n, step, residue, place in zip(moved, steps, by_residue, by_place, strict=True)
            )
            yield sum(a.first_tap + k * a.by_tap for k, a in zip(element, self.along, strict=True))


class PlanePart(NamedTuple):
    """So many places of each dimension are computed at a time, with planes of these lengths."""

    places: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def sums(self) -> int:
        """Places of planes from the first one of the two inner dimensions to the last one."""
        return max(0, self.places[1] - 1) * self.lengths[2] + self.places[2]


class PlaneHead(NamedTuple):
    """What native code is told first; where the numbers of each phase begin follows."""

    phases: int
    nbytes: int


class PlaneNumbers(NamedTuple):
    """What it is told of a phase; three ``PlaneDimension`` follow, and two numbers for each element of the window."""

    groups: int
    channels: int
    features: int
    blocks: int
    taps: int
    every: int
    """Elements of the whole window."""
    source_item: int
    source_group: int
    source_channel: int
    result_item: int
    result_group: int
    result_feature: int
    result_first: int
    plane: int
    """How far apart the planes of channels are."""
    planes: int
    sums: int
    """How far apart the sums of features are."""


class PlaneDimension(NamedTuple):
    cuts: int
    part: int
    places: int
    source: int
    low: int
    stride: int
    length: int
    source_by: int
    result_by: int


@dataclass(frozen=True)
class Planes:
    """A convolution for its native function, with so many ``features`` in a block."""

    shape: tuple[int, ...]
    features: int
    together: tuple[bool, bool]
    """Whether channels of the operand are neighbours in memory, and features of the result."""
    scalars: tuple[int, ...]
    extent: int
    flops: int


class SumBlock(NamedTuple):
    """Of how many features and lanes blocks of sums are made."""

    features: int
    lanes: int


def described(shapes: Shapes, block: SumBlock, nbytes: int) -> Planes:
    """For elements of so many bytes."""
    cuts = _cuts(shapes, block.features)
    told = [_numbers(shapes, phase, block, cuts) for phase in shapes.phases]
    head = PlaneHead(len(told), max(n.planes + block.features * n.sums for n, _ in told) * nbytes)
    starts = itertools.accumulate((len(rest) + len(n) for n, rest in told), initial=len(head) + len(told))
    scalars = (*head, *list(starts)[:-1], *itertools.chain(*((*n, *rest) for n, rest in told)))
    extent = len(told) * shapes.batch * shapes.groups * math.prod(cuts)
    return Planes(shapes.result.shape, block.features, shapes.together, tuple(map(int, scalars)), extent, shapes.flops)


def _numbers(
    shapes: Shapes, phase: PlanePhase, block: SumBlock, cuts: Sequence[int]
) -> tuple[PlaneNumbers, Sequence[int]]:
    part = phase.part(cuts)
    plane, sums = _apart(math.prod(part.lengths) * phase.residues + LINE), _apart(part.sums + REACH)
    channels = -(-shapes.channels // block.lanes) * block.lanes if shapes.together[0] else shapes.channels
    numbers = PlaneNumbers(
        shapes.groups, shapes.channels, shapes.features, -(-shapes.features // block.features), phase.taps,
        shapes.taps, *shapes.by_source, *shapes.by_result, sum(a.first_result for a in phase.along), plane,
        channels * plane + REACH, sums,
    )  # fmt: skip
    dimensions = [
        PlaneDimension(cut, n, a.places, a.source, a.low, a.stride, length, a.by_source, a.by_result)
        for cut, n, length, a in zip(cuts, *part, phase.along, strict=True)
    ]
    return numbers, (*itertools.chain(*dimensions), *phase.window(part.lengths))


def _apart(size: int) -> int:
    """At least so many elements, in an odd number of lines: places of different planes then meet in few lines of the
    cache."""
    return (-(-size // LINE) | 1) * LINE


def _cuts(shapes: Shapes, features: int) -> list[int]:
    """The fewest whose parts stay in the cache; more if threads had too few to share."""
    cuts, most = [1] * SPATIAL, [max(p.along[n].places for p in shapes.phases) for n in range(SPATIAL)]
    items = shapes.batch * shapes.groups * len(shapes.phases)

    def elements(phase: PlanePhase) -> int:
        part = phase.part(cuts)
        return shapes.channels * phase.residues * math.prod(part.lengths) + features * part.sums

    def large() -> bool:
        return max(map(elements, shapes.phases)) > ELEMENTS

    def few() -> bool:
        return items * math.prod(cuts) < ITEMS and math.prod(shapes.phases[0].part(cuts).places) > 2 * SMALL

    for n in range(SPATIAL):
        while cuts[n] < most[n] and (large() or few()):
            cuts[n] += 1
    return cuts


def why_no_windows(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why there are no windows that planes could serve, if so."""
    if not 0 < len(params["padding"]) <= SPATIAL:
        return f"planes have one to {SPATIAL} spatial dimensions"
    if params["batch_group_count"] > 1:
        return "gradients by weights are products"
    if not all(math.prod(a.shape) for a in avals):
        return "nothing is added up"
    shapes = Shapes(avals, params)
    if not shapes.flops:
        return "nothing is added up"
    return None if 1 < shapes.taps <= TAPS else f"a window of {shapes.taps} elements needs no planes"


def why_not(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why a convolution isn't computed like this, if so."""
    if (reason := why_no_windows(avals, params)) is not None:
        return reason
    shapes = Shapes(avals, params)
    if shapes.together[0] and shapes.channels == 1 < shapes.groups:
        return "neighbours are taken apart"
    if shapes.places < FEW:
        return "packing weights takes longer than computing with them"
    part = shapes.phases[0].part([1] * SPATIAL)
    useful, computed = math.prod(part.places), part.places[0] * -(-part.sums // LINE) * LINE
    if USEFUL * useful < computed:
        return f"{useful} places of the result are few of {computed} that windows pass"
    return None


def why_many(avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> str | None:
    """Why large blocks of registers would be needed for it, if so: with small ones BLAS takes less time."""
    shapes = Shapes(avals, params)
    if shapes.channels * shapes.features > MANY:
        return f"{shapes.channels} x {shapes.features} weights at each place of the window are many"
    if shapes.together[1] and shapes.features > TOGETHER:
        return f"{shapes.features} features that are together are many to be put there from planes"
    return None


# --- weights ---------------------------------------------------------------------------------------------------------


class WeightNumbers(NamedTuple):
    """What the native function that packs weights is told; the window's elements in their memory follow."""

    blocks: int
    channels: int
    features: int
    taps: int
    by_group: int
    by_feature: int
    by_channel: int


@dataclass(frozen=True)
class PackedWeights:
    """Weights as blocks read them: of each element of the window, those of all features of a block."""

    shape: tuple[int, ...]
    scalars: tuple[int, ...]

    @property
    def extent(self) -> int:
        return self.shape[0]

    @property
    def flops(self) -> int:
        return math.prod(self.shape)


def packed(shapes: Shapes, features: int) -> PackedWeights:
    blocks = -(-shapes.features // features)
    _, by_group, by_feature = shapes.by_weight
    numbers = WeightNumbers(
        blocks, shapes.channels, shapes.features, shapes.taps, by_group, by_feature, shapes.weight_by_channel
    )
    window = itertools.product(*(range(0, a.window * a.by_weight, a.by_weight) for a in shapes.along))
    shape = shapes.groups * blocks, shapes.channels, shapes.taps, features
    return PackedWeights(shape, (*numbers, *map(sum, window)))
