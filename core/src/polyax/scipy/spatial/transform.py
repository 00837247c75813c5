"""Rotations in space, as unit quaternions (x, y, z, w), and paths between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from polyax import numpy as jnp
from polyax import random
from polyax.numpy.promotion import inexact

__all__ = ["Rotation", "Slerp"]


class Rotation(NamedTuple):
    """One rotation or a stack of them.

    >>> print(Rotation.from_euler("z", 90.0, degrees=True).apply(np.array([1.0, 0.0, 0.0])).round(3) + 0)
    [0. 1. 0.]
    """

    quat: Any

    # --- from numbers

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """From quaternions, which are normalised."""
        return cls(_unit(_vectors("from_quat", quat, 4)))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """From axes whose lengths are the angles."""
        v = _vectors("from_rotvec", rotvec, 3)
        v = jnp.deg2rad(v) if degrees else v
        angle = _length(v)
        small = angle < 1e-3
        safe = jnp.where(small, 1.0, angle)
        scale = jnp.where(small, 0.5 - angle**2 / 48 + angle**4 / 3840, jnp.sin(safe / 2) / safe)
        return cls(jnp.concatenate([scale * v, jnp.cos(angle / 2)], -1))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """From modified Rodrigues parameters: axes whose lengths are the tangents of a quarter of the angles."""
        v = _vectors("from_mrp", mrp, 3)
        square = jnp.sum(v * v, -1, keepdims=True)
        return cls(jnp.concatenate([2 * v, 1 - square], -1) / (1 + square))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """From orthogonal matrices: of four formulas, the one with the largest divisor."""
        m = inexact("from_matrix", jnp.asarray(matrix))[0]
        if m.shape[-2:] != (3, 3):
            raise ValueError(f"Expected `matrix` to have shape (3, 3) or (N, 3, 3), got {m.shape}")
        at = lambda i, j: m[..., i, j]
        trace = at(0, 0) + at(1, 1) + at(2, 2)
        rows = []
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            numbers = {i: 1 - trace + 2 * at(i, i), j: at(j, i) + at(i, j), k: at(k, i) + at(i, k)}
            rows.append(jnp.stack([*(numbers[d] for d in range(3)), at(k, j) - at(j, k)], -1))
        rows.append(jnp.stack([at(2, 1) - at(1, 2), at(0, 2) - at(2, 0), at(1, 0) - at(0, 1), 1 + trace], -1))
        largest = jnp.argmax(jnp.stack([at(0, 0), at(1, 1), at(2, 2), trace], -1), -1)
        chosen = jnp.take_along_axis(jnp.stack(rows, -2), largest[..., None, None], -2)[..., 0, :]
        return cls(_unit(chosen))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """From angles about axes.

        Args:
          seq: up to three of 'xyz' (about fixed axes) or of 'XYZ' (about axes that turn along).
          angles: for each axis, along the last dimension; for one axis, a number or a vector of rotations.
        """
        axes, fixed = _axes(seq)
        a = inexact("from_euler", jnp.asarray(angles))[0]
        a = jnp.deg2rad(a) if degrees else a
        a = a[..., None] if len(axes) == 1 and (a.ndim == 0 or a.shape[-1] != 1) else a
        if a.shape[-1:] != (len(axes),):
            raise ValueError(f"Expected `angles` to have {len(axes)} numbers along the last axis, got shape {a.shape}")
        total: Any = None
        for i, axis in enumerate(axes):
            turn = _about(axis, a[..., i])
            total = turn if total is None else _composed(turn, total) if fixed else _composed(total, turn)
        return cls(total)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The rotation by nothing, or so many."""
        one = jnp.asarray(np.array([0, 0, 0, 1]), dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """Uniformly distributed ones."""
        return cls(_unit(random.normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """All of these in one stack."""
        return cls(jnp.concatenate([r.quat.reshape(-1, 4) for r in rotations]))

    # --- to numbers

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Any:
        """Quaternions; with ``canonical``, of both signs that whose first number but 0, from w on, is positive."""
        q = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(q, 1, axis=-1) if scalar_first else q

    def as_matrix(self) -> Any:
        """Orthogonal matrices."""
        x, y, z, w = (self.quat[..., i] for i in range(4))
        rows = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Axes whose lengths are the angles."""
        q = _canonical(self.quat)
        size = _length(q[..., :3])
        angle = 2 * jnp.arctan2(size, q[..., 3:])
        small = angle < 1e-3
        safe = jnp.where(small, 1.0, angle)
        scale = jnp.where(small, 2 + angle**2 / 12 + 7 * angle**4 / 2880, safe / jnp.sin(safe / 2))
        vector = scale * q[..., :3]
        return jnp.rad2deg(vector) if degrees else vector

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters."""
        q = self.quat
        sign = jnp.where(q[..., 3:] < 0, -1.0, 1.0)
        return sign * q[..., :3] / (1 + sign * q[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Angles about three axes, as ``from_euler`` takes them; where they aren't unique, the third is 0."""
        axes, fixed = _axes(seq)
        if len(axes) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        angles = _euler(self.quat, axes if fixed else axes[::-1])
        angles = angles if fixed else [angles[2], angles[1], angles[0]]
        result = jnp.stack(angles, -1)
        return jnp.rad2deg(result) if degrees else result

    def magnitude(self) -> Any:
        """The angles."""
        return 2 * jnp.arctan2(_length(self.quat[..., :3])[..., 0], jnp.abs(self.quat[..., 3]))

    # --- operations

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not a stack."""
        return np.ndim(self.quat) < 2

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __mul__(self, other: Any) -> Rotation:
        """The rotation ``other``, and then this one."""
        return Rotation(_composed(self.quat, other.quat))

    def inv(self) -> Rotation:
        """The rotations back."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1]).astype(self.quat.dtype))

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """The vectors, rotated; or rotated back with ``inverse``."""
        matrix = self.as_matrix()
        matrix = jnp.swapaxes(matrix, -1, -2) if inverse else matrix
        return jnp.sum(matrix * _vectors("apply", vectors, 3)[..., None, :], -1)

    def mean(self, weights: Any = None) -> Rotation:
        """The rotation that is nearest to all of these, in the mean square of the matrices' differences."""
        q = self.quat.reshape(-1, 4)
        w = jnp.ones(q.shape[0], q.dtype) if weights is None else inexact("mean", weights)[0]
        if w.shape != q.shape[:1]:
            raise ValueError(f"Expected `weights` to have number of values equal to {q.shape[0]}, got shape {w.shape}")
        return Rotation(jnp.linalg.eigh(jnp.einsum("i,ij,ik->jk", w, q, q))[1][:, -1])


def _vectors(name: str, x: Any, size: int) -> Any:
    x = inexact(name, jnp.asarray(x))[0]
    if x.shape[-1:] != (size,):
        raise ValueError(f"{name}: expected vectors of {size} numbers along the last axis, got shape {x.shape}")
    return x


def _length(v: Any) -> Any:
    """Of vectors, whose derivative at 0 is 0."""
    square = jnp.sum(v * v, -1, keepdims=True)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def _unit(q: Any) -> Any:
    return q / jnp.linalg.norm(q, axis=-1, keepdims=True)


def _composed(p: Any, q: Any) -> Any:
    """Hamilton's product."""
    cross = jnp.cross(p[..., :3], q[..., :3]) + p[..., 3:] * q[..., :3] + q[..., 3:] * p[..., :3]
    return jnp.concatenate([cross, p[..., 3:] * q[..., 3:] - jnp.sum(p[..., :3] * q[..., :3], -1, keepdims=True)], -1)


def _canonical(q: Any) -> Any:
    sign = jnp.zeros_like(q[..., 0])
    for i in (3, 0, 1, 2):
        sign = jnp.where(sign == 0, jnp.sign(q[..., i]), sign)
    return q * sign[..., None]


def _axes(seq: str) -> tuple[list[int], bool]:
    """The numbers of axes, and whether they are fixed."""
    if not re.fullmatch(r"[xyz]{1,3}|[XYZ]{1,3}", seq):
        raise ValueError(f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}")
    axes = ["xyz".index(c) for c in seq.lower()]
    if any(a == b for a, b in pairwise(axes)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return axes, seq.islower()


def _about(axis: int, angle: Any) -> Any:
    numbers = [jnp.zeros_like(angle)] * 3
    numbers[axis] = jnp.sin(angle / 2)
    return jnp.stack([*numbers, jnp.cos(angle / 2)], -1)


def _euler(q: Any, axes: Sequence[int]) -> list[Any]:
    """Angles about fixed axes: Bernardes and Viollet, "Quaternion to Euler angles conversion" (2022)."""
    i, j, k = axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = float((i - j) * (j - k) * (k - i) // 2)
    x, y, z, w = q[..., i], q[..., j], q[..., k] * sign, q[..., 3]
    a, b, c, d = (w, x, y, z) if symmetric else (w - y, x + z, y + w, z - x)
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    plus, minus = jnp.arctan2(b, a), jnp.arctan2(d, c)
    low, high = jnp.abs(middle) < 1e-7, jnp.abs(middle - np.pi) < 1e-7
    first = jnp.where(low, 2 * plus, jnp.where(high, -2 * minus, plus - minus))
    third = jnp.where(low | high, 0.0, plus + minus)
    third = third if symmetric else third * sign
    middle = middle if symmetric else middle - np.pi / 2
    return [(angle + np.pi) % (2 * np.pi) - np.pi for angle in (first, middle, third)]


class Slerp(NamedTuple):
    """A path through rotations, at a constant speed between each and the next."""

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Any) -> Slerp:
        """The path that is at these rotations at these times, which increase.

        Raises:
          ValueError: there are fewer than two, or not as many times.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) < 2:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = inexact("Slerp", times)[0]
        if times.shape != (len(rotations),):
            raise ValueError(f"Expected number of rotations to be equal to the number of times, got {times.shape}")
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at other times."""
        at = inexact("Slerp", times)[0]
        piece = jnp.clip(jnp.searchsorted(self.times, at, side="right") - 1, 0, self.timedelta.shape[0] - 1)
        part = (at - self.times[piece]) / self.timedelta[piece]
        return Rotation(self.rotations.quat[piece]) * Rotation.from_rotvec(self.rotvecs[piece] * part[..., None])
