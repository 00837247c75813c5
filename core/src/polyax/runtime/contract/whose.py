"""Whose a backend is, for errors: what it does wrong, and what it raises, is said to be its plugin's.

Must not know what backends do.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from polyax.ir import blame
from polyax.ir.errors import PluginError

NONE = type(None)
MISTAKES = (PluginError, AssertionError, AttributeError, LookupError, NameError, TypeError)
"""What programs raise that are wrong themselves: users can do no more than use another one."""


class Owner(NamedTuple):
    """Who brings a backend, for errors: "plugin 'mine' of polyax-mine 1.2", and what the user can do."""

    title: str
    remedy: str


class Owned(Protocol):
    """What errors must know of a backend."""

    name: str
    owner: Owner | None


class Placed(Protocol):
    """What they must know of a device."""

    @property
    def backend(self) -> Owned: ...


def owner(backend: Owned) -> Owner:
    """Who brings a backend."""
    module = type(backend).__module__
    return backend.owner or Owner(f"backend {backend.name!r} of {module}", f"correct {module}")


def tell(error: BaseException, device: Placed, what: str) -> None:
    """``what`` is followed by the device: "program 'f' was run on".

    Raises:
      PluginError: a plugin wants to end the process, which is only the user's to do; Python shows no note then.
    """
    if isinstance(error, KeyboardInterrupt):
        return
    whose = owner(device.backend)
    if isinstance(error, SystemExit) and "told" not in blame.facts(error):
        title = blame.facts(error).get("plugin", whose.title)
        ended = PluginError(f"{title} raised SystemExit({error})")
        blame.about(ended, **blame.facts(error))
        tell(ended, device, what)
        raise ended from error
    if isinstance(error, MISTAKES):
        blame.about(error, hint=f"the remedy: {whose.remedy}")
    blame.tell(error, whose.title, f"{what} {device}")


def broken(device: Placed, what: str, remedy: str = "") -> PluginError:
    """The error for what a backend must not do; ``what`` begins with the function that did it."""
    whose = owner(device.backend)
    error = PluginError(
        f"{whose.title} breaks the contract of backends on {device}: {what}. The remedy: {remedy or whose.remedy}."
    )
    blame.about(error, plugin=whose.title, told=True)
    return error


def ask(device: Placed, whom: Any, method: str, *args: Any, kinds: Any, what: str) -> Any:
    """What a method of the device's backend, of an executable or of a buffer answers, where no launch waits for it.

    ``kinds``: of which class the answer has to be; ``what``: that in words.

    Raises:
      PluginError: it is of none of them.
    """
    try:
        answer = getattr(whom, method)(*args)
    except NotImplementedError:  # which is an answer
        raise
    except BaseException as e:
        tell(e, device, f"{method} was asked of")
        raise
    if not isinstance(answer, kinds):
        raise broken(device, f"{method} gave {answer!r}, not {what}")
    return answer
