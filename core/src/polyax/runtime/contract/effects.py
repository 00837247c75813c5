"""Programs with effects that were started: who waits for effects learns of errors that nobody has been told of.

Knows neither devices nor what the effects are; tokens are those of launches.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import Any

_lock = threading.Lock()
_pending: list[tuple[str, Sequence[Any]]] = []


def started(name: str, tokens: Sequence[Any]) -> None:
    """Keeps in mind that a program is under way; ``tokens``: one for each of its devices."""
    if tokens:
        with _lock:
            _pending[:] = [entry for entry in _pending if not all(t.done and t.error is None for t in entry[1])]
            _pending.append((name, tokens))


def barrier() -> None:
    """Waits for all of them.

    Raises:
      The first error of a program that nobody has been told of, with a note that says which program it was.
    """
    with _lock:
        entries = list(_pending)
        _pending.clear()
    failed = [(name, e) for name, tokens in entries if (e := _error(tokens)) is not None]
    if failed:
        name, error = failed[0]
        error.add_note(f"raised in {name}, which had been started before; nobody has asked for a result of it since")
        raise error


def _error(tokens: Sequence[Any]) -> BaseException | None:
    known = any(t.told for t in tokens)
    errors: list[BaseException] = []
    for t in tokens:
        try:
            t.wait()
        except Exception as e:
            errors.append(e)
    return errors[0] if errors and not known else None


atexit.register(barrier)
