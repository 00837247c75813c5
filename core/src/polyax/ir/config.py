"""Settings: the values of flags, for the process and, where they are overridden, for a thread.

Lives at the bottom because dtypes depend on ``enable_x64``. Must not know what any flag does.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Generator
from typing import Any

from polyax.ir.flags import ALIASES, FLAGS, Flag
from polyax.ir.flags import parse_bool as parse_bool

trace_keys: dict[int, int] = {}
"""``config.trace_key()`` for each ``config.call_key()`` that there was."""


class _Overrides(threading.local):
    """What a thread has set for itself: the values of all flags, and their ``call_key``."""

    values: dict[str, Any] | None = None
    key: int | None = None


class Config:
    """``config.update(name, value)`` sets a flag for the process; ``config.override(name=value)`` for one thread."""

    def __init__(self) -> None:
        self._process = {f.name: f.from_environment() for f in FLAGS.values()}
        self._local = _Overrides()
        self._listeners: list[Callable[[str], None]] = []
        self._keys: dict[tuple[Any, ...], int] = {}  # values of the traced flags -> a small number
        self._numbers = itertools.count(1)  # two threads never get the same
        self._process_key = self._key_of(self._process)
        self._search: Callable[[], None] | None = None

    def add_flag(self, flag: Flag) -> Callable[[], Any]:
        """Declares a setting of a plugin, when that is imported, and gives the function that reads it.

        What traces depend on can't be declared so late.

        Raises:
          ValueError: there is another setting of that name.
        """
        assert not flag.traced
        if FLAGS.setdefault(flag.name, flag) is not flag:
            raise ValueError(f"there is a setting named {flag.name!r} already: {FLAGS[flag.name].doc}")
        return lambda: getattr(self, flag.name)

    def on_unknown(self, search: Callable[[], None]) -> None:
        """Calls ``search`` before a setting is refused for the first time: it imports the plugins, which have some."""
        self._search = search

    def _canonical(self, name: str) -> str:
        short = name.removeprefix("jax_").removeprefix("polyax_")
        short = ALIASES.get(short, short)
        if short not in FLAGS and (accepted := _accepted(short)) is not None:
            self.add_flag(accepted)
        if short not in FLAGS and self._search is not None:
            search, self._search = self._search, None
            search()
        if short not in FLAGS:
            raise AttributeError(f"Unrecognized config option: {name}. Options: {', '.join(sorted(FLAGS))}")
        return short

    def _key_of(self, values: dict[str, Any]) -> int:
        traced = tuple(values[f.name] for f in FLAGS.values() if f.traced)
        trace_key = self._keys.setdefault(traced, next(self._numbers))
        call_key = self._keys.setdefault((trace_key, values["device"]), next(self._numbers))
        trace_keys[call_key] = trace_key
        return call_key

    def traced_values(self, key: int) -> dict[str, Any]:
        """What ``key``, of ``trace_key()``, stands for."""
        values = next(values for values, number in self._keys.items() if number == key)
        return dict(zip([f.name for f in FLAGS.values() if f.traced], values, strict=True))

    @property
    def x64_enabled(self) -> bool:
        """``enable_x64`` by the name under which programs written for JAX read it."""
        return bool(self.enable_x64)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        values = self._local.values or self._process
        return values[name] if name in values else self._late(self._canonical(name))

    def _late(self, name: str) -> Any:
        """The value of a flag that may have been declared after the values in force were noted."""
        values = self._local.values or {}
        if name not in self._process:
            self._process[name] = FLAGS[name].from_environment()
        return values.get(name, self._process[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise AttributeError(f"settings are set by a call: config.update({name!r}, {value!r})")
        object.__setattr__(self, name, value)

    def parse_flags_with_absl(self) -> None:
        """Takes settings from the command line: ``--jax_enable_x64=1`` or ``--jax_enable_x64``. Where ``absl`` is
        installed, its flags know them too, and count as parsed."""
        self._take_flags(parsed=True)

    def config_with_absl(self) -> None:
        """The same, but ``absl`` parses its flags later, in ``absl.app.run``."""
        self._take_flags(parsed=False)

    def _take_flags(self, parsed: bool) -> None:
        from polyax.ir import command_line

        command_line.tell_absl(parsed)
        for flag, text in command_line.settings():
            self.update(flag, text)

    def read(self, name: str) -> Any:
        """The value of a flag, under any of its names.

        Raises:
          AttributeError: there is no such flag.
        """
        return getattr(self, name)

    def get(self, flag: str) -> Any:
        """The value of a flag by its exact name, quickly."""
        return (self._local.values or self._process)[flag]

    def update(self, name: str, value: Any) -> None:
        """Sets a flag for the process, under any of its names.

        Raises:
          AttributeError: there is no such flag.
          ValueError: it can't be that.
        """
        name = self._canonical(name)
        before, value = self._process, FLAGS[name].checked(value)
        self._set(before | {name: value})
        try:
            for listener in self._listeners if value != before.get(name) else ():
                listener(name)
        except RuntimeError:  # it is too late to set it
            self._set(before)
            raise

    def _set(self, values: dict[str, Any]) -> None:
        self._process, self._process_key = values, self._key_of(values)

    @contextlib.contextmanager
    def restored(self, values: dict[str, Any], key: int) -> Generator[None]:
        """This thread sees what ``in_force()`` and ``call_key()`` were elsewhere."""
        before = self._in_force()
        self.restore((values, key))
        try:
            yield
        finally:
            self.restore(before)

    @contextlib.contextmanager
    def override(self, **values: Any) -> Generator[None]:
        before = self.override_until_restored(**values)
        try:
            yield
        finally:
            self.restore(before)

    def override_until_restored(self, **values: Any) -> Any:
        """Sets flags for this thread; what it returns is for ``restore``."""
        before = self._in_force()
        merged = self.in_force() | {self._canonical(k): v for k, v in values.items()}
        self.restore((merged, self._key_of(merged)))
        return before

    def restore(self, before: Any) -> None:
        self._local.values, self._local.key = before

    def _in_force(self) -> Any:
        return self._local.values, self._local.key

    def on_update(self, listener: Callable[[str], None]) -> None:
        """Calls ``listener(name)`` after each process-wide update."""
        self._listeners.append(listener)

    def call_key(self) -> int:
        """Stands for the values that a call depends on: those of its trace, and the default device."""
        return self._local.key or self._process_key

    def trace_key(self) -> int:
        """Stands for the values that a trace depends on; part of every cache key."""
        return trace_keys[self._local.key or self._process_key]

    def in_force(self) -> dict[str, Any]:
        """The values of all flags that this thread sees."""
        return dict(self._local.values or self._process)

    @property
    def values(self) -> dict[str, Any]:
        """The values of all flags that JAX has too, by JAX's names, which begin with ``jax_``: a copy.

        >>> config.values["jax_enable_x64"]
        False
        """
        from polyax.ir.accepted import all_accepted

        own = {f.alias or f.name: getattr(self, f.name) for f in [*FLAGS.values()] if f.alias != "-"}
        return {f"jax_{name}": value for name, value in (all_accepted() | own).items()}


def _accepted(name: str) -> Flag | None:
    """A setting of JAX that means nothing here."""
    from polyax.ir.accepted import accepted

    return accepted(name)


config = Config()
