"""What listeners hear of events."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import polyax
from polyax import monitoring


@pytest.fixture
def heard() -> Iterator[list[tuple[str, str]]]:
    events: list[tuple[str, str]] = []

    def listener(event: str, seconds: float, fun_name: str) -> None:
        assert seconds >= 0
        events.append((event, fun_name))

    monitoring.register_event_duration_secs_listener(listener)
    yield events
    monitoring.unregister_event_duration_listener(listener)


def test_recompilations_are_counted(heard: list[tuple[str, str]]) -> None:
    @polyax.jit
    def counted(x):
        return x * 2 + 1

    both = [(monitoring.TRACED, "counted"), (monitoring.COMPILED, "counted")]
    counted(1.0)
    assert heard == both
    counted(2.0)
    assert heard == both, "a launch is no event"
    counted(1)
    assert heard == both * 2
