"""Programs with effects that were started: who waits for effects learns of errors that nobody has been told of.

Must not know what the effects are; tokens are those of launches.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence

from polyax.ir.blame import note
from polyax.runtime.contract.backend import Device, Token
from polyax.runtime.contract.whose import tell

_lock = threading.Lock()
Placed = tuple[Token, Device]
"""What tells of effects, and where they are."""
_pending: list[tuple[str, Sequence[Placed]]] = []


def started(name: str, tokens: Sequence[Placed]) -> None:
    """Keeps in mind that a program is under way; ``tokens``: one for each of its devices."""
    if tokens:
        with _lock:
            _pending[:] = [entry for entry in _pending if not all(t.done and t.error is None for t, _ in entry[1])]
            _pending.append((name, tokens))


def barrier() -> None:
    """Waits for all of them.

    Raises:
      The first error of a program that nobody has been told of, with a note that says which program it was.
    """
    with _lock:
        entries = list(_pending)
        _pending.clear()
    failed = [(name, e) for name, tokens in entries if (e := _error(name, tokens)) is not None]
    if failed:
        name, error = failed[0]
        note(error, f"raised in {name}, which had been started before; nobody has asked for a result of it since")
        raise error


def _error(name: str, tokens: Sequence[Placed]) -> BaseException | None:
    known = any(t.told for t, _ in tokens)
    errors: list[BaseException] = []
    for t, device in tokens:
        try:
            t.wait()
        except BaseException as e:
            tell(e, device, f"program {name!r} was run on")
            errors.append(e)
    return errors[0] if errors and not known else None


atexit.register(barrier)
