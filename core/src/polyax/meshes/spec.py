"""``PartitionSpec``: which dimension of an array is cut along which axes of a mesh."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Cuts = tuple[tuple[Any, ...], ...]
"""For each dimension of an array the axes that it is cut along, outermost first: what specs mean."""

Sums = frozenset[Any]
"""Axes along which blocks are parts of sums that are still to be made."""

OpenCuts = tuple[tuple[Any, ...] | None, ...]
"""``Cuts`` that leave some dimensions open: None there."""


NO_AXES: Sums = frozenset()


class Summands(tuple[tuple[Any, ...], ...]):
    """``Cuts`` of an array that is a sum of what devices have, along the axes ``sums``, which cut nothing; or whose
    cotangent is, along those ``reduced``."""

    sums: Sums
    reduced: Sums

    def __new__(cls, cuts: Iterable[Any], sums: Sums, reduced: Sums = NO_AXES) -> Summands:
        found = super().__new__(cls, cuts)
        found.sums, found.reduced = sums, reduced
        return found

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other) and (self.sums, self.reduced) == (sums_of(other), cotangent_sums_of(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple.__hash__(self), self.sums, self.reduced))


def sums_of(cuts: Any) -> Sums:
    """Along which axes arrays that are cut so are sums still to be made."""
    return cuts.sums if type(cuts) is Summands else NO_AXES


def cotangent_sums_of(cuts: Any) -> Sums:
    """Along which axes cotangents of arrays that are cut so are such sums."""
    return cuts.reduced if type(cuts) is Summands else NO_AXES


def summands(cuts: Iterable[Any], sums: Iterable[Any], reduced: Sums = NO_AXES) -> Any:
    """The cuts, of arrays that are sums along the axes, if there are any, or whose cotangents are."""
    sums = frozenset(sums)
    return Summands(cuts, sums, reduced) if sums or reduced else tuple(cuts)


class _Unconstrained:
    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """For each dimension the name of a mesh axis, several names, or None: it isn't cut. Dimensions left out aren't cut.

    ``P.UNCONSTRAINED`` leaves a dimension to the partitioner. Along the axes ``unreduced``, what devices have are parts
    of a sum that is still to be made; along those ``reduced``, they have the same, and cotangents are such parts.

    Raises:
      ValueError: an axis is named twice in different roles.
      TypeError: ``unreduced`` or ``reduced`` is no set.

    >>> PartitionSpec("x", ("y", "z"), None)
    P('x', ('y', 'z'), None)
    """

    UNCONSTRAINED = UNCONSTRAINED
    __match_args__ = ("_partitions",)

    def __init__(self, *partitions: Any, unreduced: Any = NO_AXES, reduced: Any = NO_AXES) -> None:
        self._partitions = tuple(_canonical(p) for p in partitions)
        self.unreduced = NO_AXES if not unreduced else _named_set("unreduced", unreduced, self._partitions)
        self.reduced = NO_AXES if not reduced else _named_set("reduced", reduced, self._partitions)
        if self.unreduced & self.reduced:
            raise ValueError(
                "`unreduced` and `reduced` argument to PartitionSpec cannot overlap. "
                f"Got unreduced: {self.unreduced} and reduced: {self.reduced}"
            )

    @property
    def partitions(self) -> tuple[Any, ...]:
        return self._partitions

    def cuts(self, ndim: int) -> Cuts:
        """What it means for an array of ``ndim`` dimensions; those that are unconstrained count as not cut."""
        found = tuple(axes_of(p) for p in self._partitions)
        found += ((),) * (ndim - len(found))
        return Summands(found, self.unreduced) if self.unreduced else found

    def update(self, **changes: Any) -> PartitionSpec:
        partitions = changes.pop("partitions", self._partitions)
        return PartitionSpec(*partitions, **{"unreduced": self.unreduced, "reduced": self.reduced, **changes})

    def index(self, value: Any) -> int:
        return self._partitions.index(_canonical(value))

    def count(self, value: Any) -> int:
        return self._partitions.count(_canonical(value))

    def __iter__(self) -> Iterator[Any]:
        self._check_dimensions_alone("*pspec", "*spec.partitions")
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __getitem__(self, n: Any) -> Any:
        self._check_dimensions_alone("pspec[...]", "spec.partitions[...]")
        return self._partitions[n]

    def _check_dimensions_alone(self, what: str, remedy: str) -> None:
        if self.unreduced or self.reduced:
            raise ValueError(
                f"Using {what} is dangerous when PartitionSpec has non-empty unreduced/reduced set. Please use {remedy}"
            )

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, (PartitionSpec, tuple)):
            return NotImplemented
        if isinstance(other, tuple):
            self._check_no_tuple("__add__", other)
            return PartitionSpec(*self, *other)
        more = {n: getattr(self, n) | getattr(other, n) for n in ("unreduced", "reduced")}
        return PartitionSpec(*self.partitions, *other.partitions, **more)

    def __radd__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, tuple):
            return NotImplemented
        self._check_no_tuple("__radd__", other)
        return PartitionSpec(*other, *self)

    def _check_no_tuple(self, what: str, other: Any) -> None:
        for name in ("unreduced", "reduced"):
            if getattr(self, name):
                raise TypeError(
                    f"other {other} cannot be of instance `tuple` when self {self} has {name} in `{what}` of "
                    "PartitionSpec."
                )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, PartitionSpec)
            and self._partitions == other._partitions
            and (self.unreduced, self.reduced) == (other.unreduced, other.reduced)
        )

    def __hash__(self) -> int:
        return hash((self._partitions, self.unreduced, self.reduced))

    def __reduce__(self) -> Any:
        return _restore, (self._partitions, self.unreduced, self.reduced)

    def __repr__(self) -> str:
        parts = [repr(p) for p in self._partitions]
        marks = [f"{n}={set(v)!r}" for n in ("unreduced", "reduced") if (v := getattr(self, n))]
        comma = "," if len(parts) == 1 and not marks else ""
        return f"P({', '.join([*parts, *marks])}{comma})"


def _named_set(role: str, axes: Any, partitions: tuple[Any, ...]) -> Sums:
    if not isinstance(axes, (set, frozenset)):
        raise TypeError(f"{role} argument of PartitionSpec should be of type `frozenset` or `set`. Got type {axes}")
    if None in axes:
        raise ValueError(f"{role} cannot contain None. All elements in {role} should refer to the mesh axes.")
    if axes.intersection(a for p in partitions for a in axes_of(p)):
        raise ValueError(
            f"partitions cannot overlap with {role} axes passed to PartitionSpec. Got partitions: {partitions} and "
            f"{role} axes: {set(axes)}"
        )
    return frozenset(axes)


def _restore(partitions: tuple[Any, ...], unreduced: frozenset[Any], reduced: frozenset[Any]) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _canonical(partition: Any) -> Any:
    """A tuple of one name is that name; an empty one, None."""
    if isinstance(partition, (tuple, list)):
        return tuple(partition) if len(partition) > 1 else partition[0] if partition else None
    return partition


def axes_of(partition: Any) -> tuple[Any, ...]:
    """The axes that an entry of a spec names."""
    if partition is None or partition is UNCONSTRAINED:
        return ()
    return partition if isinstance(partition, tuple) else (partition,)


def uncut(ndim: int) -> Cuts:
    """The cuts of an array of which each device has all."""
    return ((),) * ndim


def spec_of(cuts: Cuts, reduced: Sums = NO_AXES) -> PartitionSpec:
    return PartitionSpec(
        *[c or None for c in cuts], unreduced=sums_of(cuts), reduced=reduced or cotangent_sums_of(cuts)
    )


def trimmed_spec(cuts: Cuts) -> PartitionSpec:
    """Without the last dimensions that aren't cut."""
    last = max((d + 1 for d, names in enumerate(cuts) if names), default=0)
    return spec_of(summands(cuts[:last], sums_of(cuts), cotangent_sums_of(cuts)))


def open_cuts(spec: PartitionSpec, ndim: int) -> OpenCuts:
    """What the spec says of each dimension; None for those that it leaves open."""
    given = [None if p is UNCONSTRAINED else axes_of(p) for p in spec.partitions]
    return summands((*given, *((),) * (ndim - len(given))), spec.unreduced)
