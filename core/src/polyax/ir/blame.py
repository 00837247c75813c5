"""Whose fault an error is: what is known of it is gathered on its way out, and told in one note.

Whoever knows something adds it: the innermost knows best. Knows neither plugins nor devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyax.ir.errors import PluginError

_ATTRIBUTE = "_polyax_blame"
_PLACES = (("kernel", "kernel {!r}"), ("primitives", "primitives {}"), ("source", "asked for at {}"), ("hint", "{}"))


def about(error: BaseException, **facts: Any) -> None:
    """Notes what is known: ``plugin``, ``kernel``, ``primitives``, ``source`` (the user's line), ``hint``. What was
    noted before stays.

    >>> e = ValueError("no")
    >>> about(e, kernel="sin_0"), about(e, kernel="loop_1", primitives="sin, add")
    (None, None)
    >>> dict(facts(e))
    {'kernel': 'sin_0', 'primitives': 'sin, add'}
    """
    known: dict[str, Any] = error.__dict__.setdefault(_ATTRIBUTE, {})
    for name, value in facts.items():
        if value:
            known.setdefault(name, value)


def facts(error: BaseException) -> Mapping[str, Any]:
    """What has been noted so far."""
    return error.__dict__.get(_ATTRIBUTE, {})


def expected(answer: Any, kinds: Any, found: str, what: str) -> Any:
    """``answer``, if it is of one of these classes.

    >>> expected(3, str, "source gave", "text")
    Traceback (most recent call last):
    polyax.ir.errors.PluginError: source gave 3, not text

    Raises:
      PluginError: it isn't. Who knows the plugin adds its name and the remedy.
    """
    if isinstance(answer, kinds):
        return answer
    raise PluginError(f"{found} {answer!r}, not {what}")


def expected_reason(answer: Any, eqn: Any, found: str) -> str | None:
    """``answer``, which says why something doesn't take the equation ``eqn``, or None.

    Raises:
      PluginError: it is no reason; the error knows the equation.
    """
    try:
        if answer == "":  # which wouldn't tell anybody anything
            raise PluginError(f"{found} '', not a reason or None")
        return expected(answer, str | None, found, "a reason or None")
    except PluginError as e:
        about(e, primitives=eqn.primitive.name, source=eqn.source)
        raise


def excuse(error: BaseException) -> None:
    """The user's own code raised it: nobody else is named."""
    about(error, told=True)


def tell(error: BaseException, plugin: str, what: str) -> None:
    """Adds the note, once: in which plugin, while ``what`` was done, and where.

    >>> e = ValueError("no")
    >>> about(e, kernel="sin_0", primitives="sin")
    >>> tell(e, "plugin 'mine' of polyax-mine 1.2", "program 'f' was run on mine:0")
    >>> e.__notes__
    ["In plugin 'mine' of polyax-mine 1.2, while program 'f' was run on mine:0: kernel 'sin_0'; primitives sin."]
    """
    if "told" in facts(error):
        return
    about(error, plugin=plugin, told=True)
    known = facts(error)
    places = "; ".join(text.format(known[name]) for name, text in _PLACES if name in known)
    note(error, f"In {known['plugin']}, while {what}{': ' + places if places else ''}.")


def note(error: BaseException, text: str) -> None:
    """Adds a note, also to an error that refuses to be changed, or has a way of its own to add notes."""
    try:
        error.add_note(text)
    except Exception:  # whatever its class does then
        error.__dict__.setdefault("__notes__", []).append(text)
