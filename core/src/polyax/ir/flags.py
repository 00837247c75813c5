"""The table of flags: what each is called, what it may be, and where it comes from.

Must not know what any flag does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Flag:
    name: str
    default: Any
    parse: Callable[[str], Any]
    doc: str
    traced: bool = False  # part of every trace cache key

    alias: str = ""
    """What JAX calls it, if otherwise; "" for the same, "-" for nothing like it."""

    @property
    def env(self) -> str:
        return "POLYAX_" + self.name.upper()

    def from_environment(self) -> Any:
        """Its value at first: that of its own environment variable, or of JAX's, or the default.

        Raises:
          ValueError: the variable says what it can't be.
        """
        names = [self.env] if self.alias == "-" else [self.env, f"JAX_{(self.alias or self.name).upper()}"]
        for name in names:
            if (text := os.environ.get(name)) is not None:
                try:
                    return self.parse(text)
                except ValueError as e:
                    raise ValueError(f"environment variable {name}: {e}") from None
        return self.default

    def checked(self, value: Any) -> Any:
        """What it becomes when it is set to ``value``.

        Raises:
          ValueError: it can't be that.
        """
        if isinstance(value, str):
            return self.parse(value)
        if isinstance(self.parse, OneOf):
            self.parse.check(value)
        if self.parse is _optional_str and value is not None:
            raise ValueError(f"new string config value must be None or of type str, got {value} of type {type(value)}.")
        return value


def parse_bool(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(f"expected 0 or 1, got {text!r}")


class OneOf:
    """Reads one of several words; ``optional``: or nothing."""

    def __init__(self, *choices: str, optional: bool = False) -> None:
        self.choices = choices
        self.optional = optional

    def __call__(self, text: str) -> str | None:
        if self.optional and not text:
            return None
        self.check(text)
        return text

    def check(self, value: Any) -> None:
        if value not in self.choices and not (self.optional and value is None):
            what = "None or in" if self.optional else "in"
            raise ValueError(f"new enum value must be {what} {list(self.choices)}, got {value} of type {type(value)}.")


def parse_filtering(text: str) -> bool:
    """JAX knows several ways to filter tracebacks, and ``off``."""
    return True if text in ("auto", "tracebackhide", "remove_frames", "quiet_remove_frames") else parse_bool(text)


def _device(text: str) -> str | None:
    """A device's name; who sets the default one may give the device itself."""
    return _optional_str(text)


def _optional_str(text: str) -> str | None:
    return text or None


def _set_by_context(text: str) -> Any:
    raise ValueError(f"it is set by polyax.set_mesh alone, got {text!r}")


def _set_by_user_context(text: str) -> Any:
    raise ValueError(f"it is set by what polyax.make_user_context gives alone, got {text!r}")


_PRECISION = OneOf(
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32", "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32",
    "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "TF32_TF32_F32",
    "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64", optional=True,
)  # fmt: skip
_GENERATOR = OneOf("threefry2x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32", "threefry4x32")
_GUARD = OneOf("allow", "log", "disallow", "log_explicit", "disallow_explicit", optional=True)

FLAGS: dict[str, Flag] = {
    f.name: f
    for f in (
        Flag("platforms", None, _optional_str, "platforms to use, in order: cuda,cpu"),
        Flag("device", None, _device, "default device, such as opencl:1", alias="-"),
        Flag("num_cpu_devices", -1, int, "virtual devices of each host platform; -1: as XLA_FLAGS says, or 1"),
        Flag("plugins", None, _optional_str, "the only distributions whose plugins are loaded", alias="-"),
        Flag("disable_plugins", None, _optional_str, "distributions whose plugins are not loaded", alias="-"),
        Flag("trace_plugins", False, parse_bool, "print each step of plugin loading", alias="-"),
        Flag(
            "host_fallback",
            "warn",
            OneOf("warn", "error", "allow"),
            "what a primitive without lowering does",
            alias="-",
        ),
        Flag("enable_x64", False, parse_bool, "64-bit types by default", traced=True),
        Flag(
            "checks",
            False,
            parse_bool,
            "check every program that a transformation or a compiler pass makes",
            alias="enable_checks",
        ),
        Flag("disable_bwd_checks", False, parse_bool, "take what rules of custom_vjp give, whatever its shapes"),
        Flag("disable_jit", False, parse_bool, "run jitted functions one operation at a time", traced=True),
        Flag("numpy_rank_promotion", "allow", OneOf("allow", "warn", "raise"), "implicit rank promotion", traced=True),
        Flag("numpy_dtype_promotion", "standard", OneOf("standard", "strict"), "implicit dtype promotion", traced=True),
        Flag("threefry_partitionable", False, parse_bool, "the newer layout of random bits", traced=True),
        Flag("default_matmul_precision", None, _PRECISION, "precision of products", traced=True),
        Flag(
            "default_prng_impl",
            "threefry2x32",
            _GENERATOR,
            "generator of new keys",
            traced=True,
        ),
        Flag("enable_custom_prng", False, parse_bool, "typed keys from random.PRNGKey", traced=True),
        Flag("legacy_prng_key", "allow", OneOf("allow", "warn", "error"), "what keys in words do to polyax.random"),
        Flag("random_seed_offset", 0, int, "what is added to seeds of keys", traced=True),
        Flag("high_dynamic_range_gumbel", False, parse_bool, "'high' mode where gumbel is given none", traced=True),
        Flag("disallow_mesh_context_manager", False, parse_bool, "raise at `with mesh`"),
        Flag("allow_f16_reductions", True, parse_bool, "whether reduce_sum may sum in 16 bits", traced=True),
        Flag("check_static_indices", False, parse_bool, "raise where a static index is out of bounds", traced=True),
        Flag("export_calling_convention_version", 10, int, "what is exported says that it follows this convention"),
        Flag("no_tracing", False, parse_bool, "raise where a jitted function would be traced"),
        Flag("no_execution", False, parse_bool, "raise where a program would run", traced=True),
        Flag("transfer_guard", None, _GUARD, "what copies between host and devices, and among these, do"),
        Flag("transfer_guard_host_to_device", None, _GUARD, "what copies from the host to devices do"),
        Flag("transfer_guard_device_to_device", None, _GUARD, "what copies among devices do"),
        Flag("transfer_guard_device_to_host", None, _GUARD, "what copies from devices to the host do"),
        Flag("user_context", (), _set_by_user_context, "values of polyax.make_user_context", traced=True, alias="-"),
        Flag("mesh", None, _set_by_context, "the mesh in force, as polyax.set_mesh says", traced=True, alias="-"),
        Flag(
            "entered_mesh",
            None,
            _set_by_context,
            "the mesh that specs are of, as `with mesh` says",
            traced=True,
            alias="-",
        ),
        Flag("abstract_mesh", None, _set_by_context, "the types of its axes in what is traced", traced=True, alias="-"),
        Flag("auto_pcast", True, parse_bool, "make operands vary alike inside shard_map", traced=True),
        Flag(
            "remove_size_one_mesh_axis_from_type", False, parse_bool, "types leave out mesh axes of size 1", traced=True
        ),
        Flag("debug_nans", False, parse_bool, "raise where a NaN first appears", traced=True),
        Flag("debug_infs", False, parse_bool, "raise where an infinity first appears", traced=True),
        Flag("launch_timeout", 0.0, float, "say what hasn't ended after so many seconds; 0: never", True, alias="-"),
        Flag("debug_backend", None, _optional_str, "platform whose programs run beside the reference", True, alias="-"),
        Flag("debug_key_reuse", False, parse_bool, "raise where a random key is used twice", traced=True),
        Flag("log_compiles", False, parse_bool, "log each compilation"),
        Flag("explain_cache_misses", False, parse_bool, "log why each function is traced: what has changed"),
        Flag("check_tracer_leaks", False, parse_bool, "raise where a traced function leaves tracers behind"),
        Flag(
            "cache_dir",
            None,
            _optional_str,
            "directory of compiled code; empty: the user's cache directory",
            alias="compilation_cache_dir",
        ),
        Flag("compilation_cache", True, parse_bool, "keep compiled code on disk", alias="enable_compilation_cache"),
        Flag(
            "dump",
            None,
            _optional_str,
            "directory where polyax-inspect writes and draws each compiled program",
            alias="-",
        ),
        Flag("traceback_filtering", True, parse_filtering, "drop polyax's own frames from error tracebacks"),
    )
}

# JAX spells its flags with a prefix, and some differently.
ALIASES = {
    "default_device": "device",
    "enable_checks": "checks",
    "platform_name": "platforms",
    "compilation_cache_dir": "cache_dir",
    "enable_compilation_cache": "compilation_cache",
}
