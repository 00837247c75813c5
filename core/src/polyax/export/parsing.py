"""Shapes and dimensions from their text: ``(b, 2*b + 1, floordiv(h, 4), _, ...)``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from polyax.export.dims import OPERATIONS, operation, variable
from polyax.ir.dims import is_symbolic_dim, max_dim, min_dim

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*)|(\.\.\.)|(.))", re.DOTALL)
_KINDS = {
    "(": "LPAR", ")": "RPAR", ",": "COMMA", "+": "PLUS", "-": "MINUS", "*": "STAR", "^": "CIRCUMFLEX", "": "ENDMARKER",
}  # fmt: skip


class Parser:
    """One text. ``like``: the shape that placeholders stand for."""

    def __init__(self, text: str, shown: str, scope: Any, like: Sequence[Any] | None = None) -> None:
        self.text = text
        self.shown = shown
        self.scope = scope
        self.like = like
        self.found: list[Any] = []
        self.tokens = [
            (m.group().strip(), m.end() - len(m.group().lstrip())) for m in _TOKEN.finditer(text) if m.group().strip()
        ]
        self.at = 0

    @property
    def token(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def error(self, detail: str) -> ValueError:
        start = self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text)
        return ValueError(
            f"syntax error in symbolic shape {self.shown} in dimension {len(self.found)}: {detail}. "
            f"Parsed '{self.text[:start]}', remaining '{self.text[start:]}'."
        )

    def take(self, *expected: str) -> str:
        token = self.token
        if expected and token not in expected:
            raise self._unexpected(*(_KINDS[e] for e in expected))
        self.at += 1
        return token

    def _unexpected(self, *kinds: str) -> ValueError:
        token = self.token
        name = "NUMBER" if token.isdigit() else "NAME" if token.isidentifier() else _KINDS.get(token, "OP")
        return self.error(f"expecting one of {{{', '.join(kinds)}}} but found {name}")

    def shape(self) -> tuple[Any, ...]:
        """All of the text as a shape."""
        inside = self.token == "("
        if inside:
            self.take("(")
        while self.token not in ("", ")"):
            last = self.token == "..."
            self._dimension()
            if last:
                break
            if self.token in ("", ")"):
                break
            self.take(",")
        if inside:
            self.take(")")
        if self.token:
            raise self._unexpected("ENDMARKER")
        return tuple(self.found)

    def _dimension(self) -> None:
        if self.token in ("_", "..."):
            self._placeholder()
            return
        before = self.at
        size = self.sum()
        if self.like is not None and not is_symbolic_dim(size):
            known = self.like[len(self.found)] if len(self.found) < len(self.like) else None
            if size != known:
                self.at = before + 1
                raise self.error(f"different size {size} for known dimension; like={self.like}")
        self.found.append(size)

    def _placeholder(self) -> None:
        if self.like is None:
            raise self.error("spec contains ... but no 'like' shape was given")
        rest = list(self.like[len(self.found) :])
        if len(self.found) >= len(self.like) + (self.token == "..."):
            raise self.error(
                f"cannot resolve placeholder '{self.token}' because we parsed {len(self.found)} already and 'like' "
                f"shape has only {len(self.like)} dimensions"
            )
        taken = rest if self.token == "..." else rest[:1]
        if any(d is None for d in taken):
            raise self.error(f"unexpected placeholder for unknown dimension; like={self.like}")
        self.found += taken
        self.take()

    def sum(self) -> Any:
        sign = -1 if self.token == "-" else 1
        if self.token in ("+", "-"):
            self.take()
        total = sign * self._product()
        while self.token in ("+", "-"):
            sign = -1 if self.take() == "-" else 1
            total = total + sign * self._product()
        if self.token not in ("", ")", ","):
            raise self._unexpected("PLUS", "MINUS")
        return total

    def _product(self) -> Any:
        found = self._power()
        while self.token == "*":
            self.take()
            found = found * self._power()
        return found

    def _power(self) -> Any:
        base = self._factor()
        if self.token != "^":
            return base
        self.take()
        return base ** self._number()

    def _number(self) -> int:
        if not self.token.isdigit():
            raise self._unexpected("NUMBER")
        return int(self.take())

    def _factor(self) -> Any:
        if self.token == "-":
            self.take()
            return -self._number()
        if self.token.isdigit():
            return self._number()
        if not self.token.isidentifier() or self.token == "_":
            raise self._unexpected("NAME", "MINUS", "NUMBER")
        name = self.take()
        return self._operation(name) if name in OPERATIONS else variable(name, self.scope)

    def _operation(self, name: str) -> Any:
        self.take("(")
        left = self.sum()
        self.take(",")
        right = self.sum()
        self.take(")")
        extreme = {"max": max_dim, "min": min_dim}.get(name)
        return extreme(left, right) if extreme else operation(name, left, right, self.scope)


def dimension(text: str, scope: Any) -> Any:
    """One dimension from its text."""
    (found,) = Parser(text, repr(text), scope).shape()
    return found
