"""Answers of a policy of ``checkpoint`` under their names."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Answer", "Offloadable", "Recompute", "Saveable"]


class Offloadable(NamedTuple):
    """A policy's answer: the value, which is in memory of kind ``src``, is saved in memory of kind ``dst``."""

    src: str
    dst: str


class Answer:
    """A policy's answer under its name; True and False say the same."""

    def __init__(self, name: str, saved: bool) -> None:
        self._name = name
        self._saved = saved

    def __bool__(self) -> bool:
        return self._saved

    def __repr__(self) -> str:
        return self._name


Saveable, Recompute = Answer("Saveable", True), Answer("Recompute", False)
