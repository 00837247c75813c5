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


def test_cleared_and_unregistered_listeners_hear_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_events", "_durations", "_spans", "_scalars"):  # those of others stay
        monkeypatch.setattr(monitoring, name, [])
    heard: list[str] = []

    def listener(event: str, *_: float, **__: str | int) -> None:
        heard.append(event)

    def tell_all() -> None:
        monitoring.record_event("event")
        monitoring.record_event_duration_secs("duration", 1.0)
        monitoring.record_event_time_span("span", 1.0, 2.0)
        monitoring.record_scalar("scalar", 1)

    for kind in ("event", "event_duration_secs", "event_time_span", "scalar"):
        getattr(monitoring, f"register_{kind}_listener")(listener)
    tell_all()
    assert heard == ["event", "duration", "span", "scalar"]
    monitoring.unregister_scalar_listener(listener)
    with pytest.raises(AssertionError, match="isn't registered"):
        monitoring.unregister_scalar_listener(listener)
    monitoring.clear_event_listeners()
    tell_all()
    assert len(heard) == 4
