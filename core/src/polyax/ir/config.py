"""Settings: one table of flags, each with an environment variable, a process value and thread-local overrides.

Lives at the bottom because dtypes depend on ``enable_x64``. Must not know what any flag does.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Flag:
    name: str
    default: Any
    parse: Callable[[str], Any]
    doc: str
    traced: bool = False  # part of every trace cache key

    @property
    def env(self) -> str:
        return "POLYAX_" + self.name.upper()


def parse_bool(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(f"expected 0 or 1, got {text!r}")


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, got {text!r}")
        return text

    return parse


def _optional_str(text: str) -> str | None:
    return text or None


def _set_by_context(text: str) -> Any:
    raise ValueError(f"it is set by polyax.set_mesh alone, got {text!r}")


FLAGS: dict[str, Flag] = {
    f.name: f
    for f in (
        Flag("platforms", None, _optional_str, "platforms to use, in order: cuda,cpu"),
        Flag("device", None, _optional_str, "default device, such as opencl:1"),
        Flag("num_cpu_devices", 1, int, "number of virtual devices of each host platform"),
        Flag("plugins", None, _optional_str, "the only distributions whose plugins are loaded"),
        Flag("disable_plugins", None, _optional_str, "distributions whose plugins are not loaded"),
        Flag("trace_plugins", False, parse_bool, "print each step of plugin loading"),
        Flag("host_fallback", "warn", one_of("warn", "error", "allow"), "what a primitive without lowering does"),
        Flag("enable_x64", False, parse_bool, "64-bit types by default", traced=True),
        Flag("checks", False, parse_bool, "check every program that a transformation or a compiler pass makes"),
        Flag("disable_jit", False, parse_bool, "run jitted functions one operation at a time", traced=True),
        Flag("numpy_rank_promotion", "allow", one_of("allow", "warn", "raise"), "implicit rank promotion", traced=True),
        Flag(
            "numpy_dtype_promotion", "standard", one_of("standard", "strict"), "implicit dtype promotion", traced=True
        ),
        Flag("threefry_partitionable", False, parse_bool, "the newer layout of random bits", traced=True),
        Flag("default_matmul_precision", None, _optional_str, "precision of products", traced=True),
        Flag("default_prng_impl", "threefry2x32", one_of("threefry2x32"), "generator of new keys", traced=True),
        Flag("enable_custom_prng", False, parse_bool, "typed keys from random.PRNGKey", traced=True),
        Flag("mesh", None, _set_by_context, "the mesh in force, as polyax.set_mesh says", traced=True),
        Flag("entered_mesh", None, _set_by_context, "the mesh that specs are of, as `with mesh` says", traced=True),
        Flag("abstract_mesh", None, _set_by_context, "the types of its axes in what is traced", traced=True),
        Flag("auto_pcast", True, parse_bool, "make operands vary alike inside shard_map", traced=True),
        Flag(
            "remove_size_one_mesh_axis_from_type", False, parse_bool, "types leave out mesh axes of size 1", traced=True
        ),
        Flag("debug_nans", False, parse_bool, "raise where a NaN first appears", traced=True),
        Flag("debug_infs", False, parse_bool, "raise where an infinity first appears", traced=True),
        Flag("log_compiles", False, parse_bool, "log each compilation"),
        Flag("explain_cache_misses", False, parse_bool, "log why each function is traced: what has changed"),
        Flag("check_tracer_leaks", False, parse_bool, "raise where a traced function leaves tracers behind"),
        Flag("cache_dir", None, _optional_str, "directory of compiled code; empty: the user's cache directory"),
        Flag("compilation_cache", True, parse_bool, "keep compiled code on disk"),
        Flag("dump", None, _optional_str, "directory where polyax-inspect writes and draws each compiled program"),
        Flag("traceback_filtering", True, parse_bool, "drop polyax's own frames from error tracebacks"),
    )
}

# JAX spells its flags with a prefix, and some differently.
_ALIASES = {
    "default_device": "device",
    "enable_checks": "checks",
    "platform_name": "platforms",
    "compilation_cache_dir": "cache_dir",
    "enable_compilation_cache": "compilation_cache",
}


class Config:
    """``config.update(name, value)`` sets a flag for the process; ``config.override(name=value)`` for one thread."""

    def __init__(self) -> None:
        self._process = {f.name: self._from_environment(f) for f in FLAGS.values()}
        self._local = threading.local()
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
        short = _ALIASES.get(short, short)
        if short not in FLAGS and self._search is not None:
            search, self._search = self._search, None
            search()
        if short not in FLAGS:
            raise AttributeError(f"Unrecognized config option: {name}. Options: {', '.join(sorted(FLAGS))}")
        return short

    @staticmethod
    def _from_environment(flag: Flag) -> Any:
        text = os.environ.get(flag.env)
        if text is None:
            return flag.default
        try:
            return flag.parse(text)
        except ValueError as e:
            raise ValueError(f"environment variable {flag.env}: {e}") from None

    def _key_of(self, values: dict[str, Any]) -> int:
        traced = tuple(values[f.name] for f in FLAGS.values() if f.traced)
        return self._keys.setdefault(traced, next(self._numbers))

    def traced_values(self, key: int) -> dict[str, Any]:
        """What ``key``, of ``trace_key()``, stands for."""
        values = next(values for values, number in self._keys.items() if number == key)
        return dict(zip([f.name for f in FLAGS.values() if f.traced], values, strict=True))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        values = self._local.__dict__.get("values") or self._process
        return values[name] if name in values else self._late(self._canonical(name))

    def _late(self, name: str) -> Any:
        """The value of a flag that may have been declared after the values in force were noted."""
        values = self._local.__dict__.get("values") or {}
        if name not in self._process:
            self._process[name] = self._from_environment(FLAGS[name])
        return values.get(name, self._process[name])

    def read(self, name: str) -> Any:
        """The value of a flag, under any of its names.

        Raises:
          AttributeError: there is no such flag.
        """
        return getattr(self, name)

    def get(self, flag: str) -> Any:
        """The value of a flag by its exact name, quickly."""
        return (self._local.__dict__.get("values") or self._process)[flag]

    def update(self, name: str, value: Any) -> None:
        name = self._canonical(name)
        if isinstance(value, str):
            value = FLAGS[name].parse(value)
        self._process[name] = value
        self._process_key = self._key_of(self._process)
        for listener in self._listeners:
            listener(name)

    @contextlib.contextmanager
    def restored(self, values: dict[str, Any], key: int) -> Generator[None]:
        """This thread sees what ``values()`` and ``trace_key()`` were elsewhere."""
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
        merged = self.values() | {self._canonical(k): v for k, v in values.items()}
        self.restore((merged, self._key_of(merged)))
        return before

    def restore(self, before: Any) -> None:
        self._local.values, self._local.key = before

    def _in_force(self) -> Any:
        return self._local.__dict__.get("values"), self._local.__dict__.get("key")

    def on_update(self, listener: Callable[[str], None]) -> None:
        """Calls ``listener(name)`` after each process-wide update."""
        self._listeners.append(listener)

    def trace_key(self) -> int:
        """Stands for the values that a trace depends on; part of every cache key."""
        return self._local.__dict__.get("key") or self._process_key

    def values(self) -> dict[str, Any]:
        return dict(self._local.__dict__.get("values") or self._process)


config = Config()
