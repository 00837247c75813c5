"""What the suite asks of devices with several kinds of memory: one that is right passes, each wrong one is caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("polyax_conformance")

from plugins.faults.broken import Working, backend
from plugins.pinned import Pinned, WithPinned

from polyax.backend import HostBuffer
from polyax.reference.backend import ReferenceExecutable
from polyax_conformance.suite import grade

CLASSES = {"device": HostBuffer, "pinned_host": Pinned}


def moving(contents: Callable[[Any, str], np.ndarray], base: type[Any] = WithPinned) -> type[Any]:
    """A backend that puts ``contents(buffer, kind)`` into the other memory."""

    def into_memory(self: Any, buffer: Any, aval: Any, device: Any, kind: str) -> HostBuffer:
        return CLASSES[kind](contents(buffer, kind))

    return type("Moving", (base,), {"into_memory": into_memory})


def waited(buffer: Any) -> np.ndarray:
    buffer.wait()
    return buffer.data


def zeros(buffer: Any, kind: str) -> np.ndarray:
    return np.zeros_like(waited(buffer))


def one_way(buffer: Any, kind: str) -> np.ndarray:
    return zeros(buffer, kind) if kind == "device" else waited(buffer).copy()


def words_alone(buffer: Any, kind: str) -> np.ndarray:
    """What is left of whole words is forgotten."""
    old = waited(buffer)
    new = np.zeros_like(old)
    whole = old.nbytes // 4 * 4
    new.reshape(-1).view(np.uint8)[:whole] = old.reshape(-1).view(np.uint8)[:whole]
    return new


def emptied(buffer: Any, kind: str) -> np.ndarray:
    """The array is gone from where it was."""
    new = waited(buffer).copy()
    if buffer.data.flags.writeable:
        buffer.data[...] = 0
    return new


def too_early(buffer: Any, kind: str) -> np.ndarray:
    return np.array(buffer.data)


def the_same(buffer: Any, kind: str) -> np.ndarray:
    return waited(buffer)


class Consuming(WithPinned):
    """Its programs write to what they are donated."""

    def compile(self, jaxpr: Any, options: Any) -> Any:
        class Executable(ReferenceExecutable):
            def launch(self, buffers: Sequence[Any], queue: Any) -> Any:
                outs, token = super().launch(buffers, queue)
                for out in outs:
                    out.wait()
                for buffer, donated in zip(buffers, options.donated):
                    if donated and buffer.data.flags.writeable:
                        buffer.data[...] = 0
                return outs, token

        return Executable(jaxpr, options)


class Blind(WithPinned):
    """Its programs don't see what is in the other memory."""

    def compile(self, jaxpr: Any, options: Any) -> Any:
        class Executable(ReferenceExecutable):
            def launch(self, buffers: Sequence[Any], queue: Any) -> Any:
                seen = [HostBuffer(zeros(b, "")) if isinstance(b, Pinned) else b for b in buffers]
                return super().launch(seen, queue)

        return Executable(jaxpr, options)


class Unread(WithPinned):
    """What is in the other memory is read as zeros."""

    def to_host(self, buffer: Any, aval: Any) -> np.ndarray:
        return zeros(buffer, "") if isinstance(buffer, Pinned) else super().to_host(buffer, aval)


WRONG: dict[str, tuple[type[Any], str]] = {
    "zeros": (moving(zeros), "test_there_and_back"),
    "one way": (moving(one_way), "test_there_and_back"),
    "words alone": (moving(words_alone), "test_there_and_back"),
    "emptied": (moving(emptied), "test_there_and_back"),
    "too early": (moving(too_early), "test_contents_that_are_still_to_come"),
    "the same": (moving(the_same, Consuming), "test_donated_arrays_leave_those_in_it_alone"),
    "blind": (Blind, "test_programs_are_given_arrays_in_it"),
    "unread": (Unread, "test_results_are_put_into_it"),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_one_is_caught(name: str) -> None:
    kind, where = WRONG[name]
    with backend(kind):
        failures = grade("broken", [0], (), "test_memories").failures
    assert any(f.startswith(f"contract::{where}[") for f in failures), failures


@pytest.mark.parametrize("kind", [WithPinned, Consuming])
def test_a_right_one_passes(kind: type[Any]) -> None:
    with backend(kind):
        score = grade("broken", [0], (), "test_memories").levels["contract"]
    assert score.passed == score.skipped > 0 and not score.failed, "of two other kinds it has one"


def test_one_memory_is_no_gap() -> None:
    with backend(type("Alone", (Working,), {"memory_kinds": ("device",)})):
        card = grade("broken", [0], (), "test_memories")
    score = card.levels["contract"]
    assert (score.passed, score.failed, score.gaps) == (0, 0, 0) and score.skipped > 0
