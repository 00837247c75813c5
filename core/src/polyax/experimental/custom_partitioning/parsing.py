"""Sharding rules in the notation of einops: names between spaces, brackets around several of one dimension."""

from __future__ import annotations

import re
from typing import Any

from polyax.experimental.custom_partitioning.mappings import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule

_WORD = re.compile(rf"{BATCHING}\d*|[^\W\d]\w*|\d\w*|[(),]|\s+|.")


def str_to_sdy_sharding_rule(rule: Any, **more: Any) -> SdyShardingRule:
    """The rule that a text such as ``"... i j, j k -> ... i k"`` says; ``more`` goes with it.

    Raises:
      TypeError: it is no text, or the size of a factor is no integer.
      ValueError: the text can't be read.

    >>> print(str_to_sdy_sharding_rule("(a b) j, ...1 j -> j", a=2, b=3))
    SdyShardingRule(((('a', 'b'), 'j'), ('…1', 'j')), (('j',),), {'a': 2, 'b': 3})
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a str, but got {type(rule)}")
    sizes = {name: n for name, n in more.items() if not name.endswith("_factors")}
    if not all(isinstance(n, int) for n in sizes.values()):
        raise TypeError(f"factor_sizes must be a dict of str to int, but got {sizes}")
    if BATCHING in rule:
        raise ValueError(f"Unknown character '{BATCHING}'")
    if "." in rule.replace("...", ""):
        raise ValueError("Character '.' must be used inside ellipsis '...'")
    sides = rule.replace("...", BATCHING).split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: '{rule}'")
    operands, results = map(_mappings, sides)
    return SdyShardingRule(operands, results, **more)


def _mappings(side: str) -> tuple[ArrayMapping, ...]:
    return tuple([_Mapping(text).read() for text in side.split(",")])


class _Mapping:
    """What one operand or result is said to be, word for word."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.dims: list[Any] = []
        self.inner: list[str] | None = None

    def read(self) -> ArrayMapping:
        for word in _WORD.findall(self.text):
            if not word.isspace():
                self._take(word)
        if self.inner is not None:
            raise ValueError(f"Brackets are not balanced in rule: '{self.text.strip()}'")
        return ArrayMapping(*self.dims)

    def _take(self, word: str) -> None:
        if word == "(":
            self._open()
        elif word == ")":
            self._close()
        elif word[0] == BATCHING:
            if self.dims or self.inner is not None:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            self.dims.append(f"{BATCHING}{int(word[1:] or 0)}")
        elif word[0].isdigit() or word[0] == "_":
            raise ValueError(f"Factor names have to start with a letter, but got '{word[0]}'")
        elif not word[0].isalpha():
            raise ValueError(f"Unknown character '{word[0]}'")
        else:
            (self.dims if self.inner is None else self.inner).append(word)

    def _open(self) -> None:
        if self.inner is not None:
            raise ValueError("Compound factors should be one level, nested brackets are not allowed")
        self.inner = []

    def _close(self) -> None:
        if self.inner is None:
            raise ValueError("Brackets are not balanced")
        if len(self.inner) < 2:
            raise ValueError("Brackets should contain at least two factors")
        self.dims.append(CompoundFactor(*self.inner))
        self.inner = None
