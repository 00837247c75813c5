"""``Error``: the first error of each kind that a program has met so far, as values that travel through it.

For each kind it holds whether there is one (``_pred``), which (``_code``) and the values for its text (``_payload``).
What exceptions codes stand for (``_metadata``) is known while tracing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyax.experimental.checkify.checking import raise_if
from polyax.experimental.checkify.failures import BatchedError, ErrorEffect, JaxException
from polyax.ir.primitive import ambient
from polyax.lax import lenient as lax
from polyax.trace.register import register_pytree_node_class
from polyax.trace.tree import PyTreeDef, tree_flatten, tree_map, tree_unflatten
from polyax.trace.varying import pvary

_codes = itertools.count(1)


class Codes(dict[int, PyTreeDef]):
    """What exceptions codes stand for. A code means the same everywhere, so that they alone are compared."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Codes) and self.keys() == other.keys()


@register_pytree_node_class
@dataclass(frozen=True)
class Error:
    """An error that a program may have met. An array with several, one for each example, is an ``Error`` too.

    >>> print(init_error.get())
    None
    """

    _pred: dict[ErrorEffect, Any]
    _code: dict[ErrorEffect, Any]
    _metadata: Codes
    _payload: dict[ErrorEffect, list[Any]]

    def get(self) -> str | None:
        """The text of the error, or None if there is none."""
        found = self.get_exception()
        return None if found is None else str(found)

    def get_exception(self) -> JaxException | None:
        """The error as an exception, or None."""
        mapped = self._mapped()
        shape = np.broadcast_shapes(*map(np.shape, self._pred.values()))
        found = {at: e for at in np.ndindex(*shape) if (e := self._at(at)) is not None}
        return BatchedError(found) if mapped and found else found.get(())

    def throw(self) -> None:
        """Raises the error, if there is one; in a function for ``checkify``, that is a check.

        Raises:
          JaxRuntimeError: with the text of the error.
        """
        raise_if(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    def _at(self, index: tuple[int, ...]) -> JaxException | None:
        """The earliest error of one example."""
        failed = [kind for kind, pred in self._pred.items() if np.asarray(pred)[index]]
        if not failed:
            return None
        code, kind = min((int(np.asarray(self._code[k])[index]), n) for n, k in enumerate(failed))
        values = [x[index] if index else x for x in self._payload[failed[kind]]]
        return tree_unflatten(self._metadata[code], values)  # type: ignore[no-any-return]

    def _mapped(self) -> bool:
        return any(np.shape(pred) for pred in self._pred.values())

    # --- in programs

    def _with(self, pred: Any, exception: JaxException) -> Error:
        """This error, or else ``exception`` if ``pred`` holds."""
        values, tree = tree_flatten(exception)
        code = next(_codes)
        return self._joined(exception.get_effect_type(), pred, np.int32(code), values, Codes({code: tree}))

    def _joined(self, kind: ErrorEffect, pred: Any, code: Any, values: list[Any], metadata: Codes) -> Error:
        """This error, or else another one of a kind."""
        if kind in self._pred:
            before = self._pred[kind]
            pred = lax.bitwise_or(before, pred)
            code = lax.select_n(before, code, self._code[kind])
            values = [lax.select_n(before, new, old) for old, new in zip(self._payload[kind], values, strict=True)]
        return Error(
            self._pred | {kind: varied(pred)},
            self._code | {kind: varied(code)},
            Codes(self._metadata | metadata),
            self._payload | {kind: list(map(varied, values))},
        )

    def _with_room(self, kinds: Iterable[ErrorEffect]) -> Error:
        """The same error, with places for these kinds as well: loops and branches keep their types."""
        error = self
        for kind in sorted(set(kinds) - self._pred.keys()):
            values = [np.ones(s.shape, s.dtype) for s in kind.shape_dtypes]
            error = error._joined(kind, np.zeros((), bool), np.int32(-1), values, Codes())
        return error

    def _single(self) -> Error:
        """Of examples, the error of the last that has one; kind by kind."""
        error = self
        while error._mapped():
            error = error._without_leading()
        return error

    def _without_leading(self) -> Error:
        parts = ({}, {}, {})
        for kind, pred in self._pred.items():
            own = pred, self._code[kind], self._payload[kind]
            at = _last(pred) if np.shape(pred) else None
            for part, value in zip(parts, own, strict=True):
                part[kind] = value if at is None else tree_map(lambda x, at=at: _row(x, at), value)
        pred, code, payload = parts
        return Error(pred, code, self._metadata, payload)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self._pred, self._code, self._payload), self._metadata

    @classmethod
    def tree_unflatten(cls, metadata: Codes, parts: Any) -> Error:
        pred, code, payload = parts
        return cls(pred, code, metadata, payload)


init_error = Error({}, {}, Codes(), {})
"""No error, and no place for one."""


def varied(x: Any) -> Any:
    """Errors vary along all axes of ``shard_map``: so loops and branches that meet them agree."""
    return pvary(x, ambient.varying) if ambient.varying else x


def _last(pred: Any) -> Any:
    """The last position along the first dimension at which any holds; the last of all if none does."""
    any_there = lax.reduce_or(pred, tuple(range(1, np.ndim(pred))))
    positions = np.arange(np.shape(pred)[0], dtype=np.int32)
    found = lax.reduce_max(lax.select_n(any_there, np.full_like(positions, -1), positions), (0,))
    return lax.select_n(lax.lt(found, np.int32(0)), found, positions[-1])


def _row(x: Any, at: Any) -> Any:
    return lax.dynamic_index_in_dim(x, at, 0, keepdims=False)
