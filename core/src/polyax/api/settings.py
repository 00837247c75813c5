"""Settings as context managers, named as in JAX: ``with polyax.debug_nans(True): ...``"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Any

from polyax.ir.config import FLAGS, config
from polyax.runtime.arrays import guards

_NOTHING: Any = object()


class Setting:
    """``setting(value)`` is a context manager that sets one flag for this thread; ``setting.value`` reads it."""

    def __init__(self, flag: str, default: Any = _NOTHING) -> None:
        self._flag = flag
        self._default = True if default is _NOTHING and FLAGS[flag].default in (True, False) else default
        self.__name__ = flag
        self.__doc__ = f"Sets ``config.{flag}`` for the current thread inside a ``with`` block: {FLAGS[flag].doc}."

    def __call__(self, new_val: Any = _NOTHING) -> AbstractContextManager[None]:
        value = self._default if new_val is _NOTHING else new_val
        if value is _NOTHING:
            raise TypeError(
                f"Context manager for {self._flag} config option requires an argument representing the new value for "
                "the config option."
            )
        return config.override(**{self._flag: FLAGS[self._flag].checked(value)})

    @property
    def value(self) -> Any:
        return getattr(config, self._flag)

    def __repr__(self) -> str:
        return f"<setting {self._flag}={self.value!r}>"


debug_nans = Setting("debug_nans")
debug_key_reuse = Setting("debug_key_reuse")
debug_infs = Setting("debug_infs")
enable_x64 = Setting("enable_x64")
enable_checks = Setting("checks")
log_compiles = Setting("log_compiles")
explain_cache_misses = Setting("explain_cache_misses")
check_tracer_leaks = Setting("check_tracer_leaks")
checking_leaks = check_tracer_leaks
threefry_partitionable = Setting("threefry_partitionable")
numpy_rank_promotion = Setting("numpy_rank_promotion")
numpy_dtype_promotion = Setting("numpy_dtype_promotion")
default_matmul_precision = Setting("default_matmul_precision")
auto_pcast = Setting("auto_pcast")
remove_size_one_mesh_axis_from_type = Setting("remove_size_one_mesh_axis_from_type")
default_prng_impl = Setting("default_prng_impl")
enable_custom_prng = Setting("enable_custom_prng")
legacy_prng_key = Setting("legacy_prng_key")
allow_f16_reductions = Setting("allow_f16_reductions")
no_tracing = Setting("no_tracing")
no_execution = Setting("no_execution")


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Inside a ``with`` block, jitted functions run one operation at a time, as plain Python.

    >>> with disable_jit():
    ...     config.disable_jit
    True
    """
    return config.override(disable_jit=disable)


# --- copies between host and devices


class GuardSetting(Setting):
    """A setting after which copies are looked at."""

    def __call__(self, new_val: Any = _NOTHING) -> AbstractContextManager[None]:
        guards.on[:] = [True]
        return super().__call__(new_val)


transfer_guard_host_to_device = GuardSetting("transfer_guard_host_to_device")
transfer_guard_device_to_device = GuardSetting("transfer_guard_device_to_device")
transfer_guard_device_to_host = GuardSetting("transfer_guard_device_to_host")


@contextlib.contextmanager
def transfer_guard(new_val: str | None) -> Generator[None]:
    """Says for the current thread, inside a ``with`` block, what copies between host and devices and among devices do.

    Args:
      new_val: ``"allow"``; ``"log"`` or ``"disallow"`` for those that nobody asked for, such as of NumPy arrays in
        calls of jitted functions; ``"log_explicit"`` or ``"disallow_explicit"`` for those of ``device_put`` and
        ``device_get`` as well. ``transfer_guard_host_to_device`` and the like say it for one direction.

    Raises:
      ValueError: it is none of them.

    >>> import numpy as np, polyax
    >>> with transfer_guard("disallow"):
    ...     x = polyax.device_put(np.ones(3))
    >>> x.tolist()
    [1.0, 1.0, 1.0]
    """
    guards.on[:] = [True]
    value = FLAGS["transfer_guard"].checked(new_val)
    with config.override(transfer_guard=value, **{f"transfer_guard_{way}": value for way in guards.WAYS}):
        yield


# --- settings of users


class UserContext:
    """A value that traced functions may depend on: ``context.value``; ``with context(value): ...`` sets it."""

    def __init__(self, default_value: Any = None) -> None:
        self._default = default_value

    @property
    def value(self) -> Any:
        return dict(config.user_context).get(self, self._default)

    def __call__(self, new_value: Any) -> AbstractContextManager[None]:
        """Sets the value for this thread inside a ``with`` block: functions are traced once for each."""
        return config.override(user_context=tuple((dict(config.user_context) | {self: new_value}).items()))


def make_user_context(default_value: Any = None) -> UserContext:
    """A value that functions may depend on which they don't take: they are traced and compiled for each.

    Values must be hashable.

    >>> import polyax
    >>> scale = make_user_context(1)
    >>> f = polyax.jit(lambda x: x * scale.value)
    >>> with scale(10):
    ...     f(2).item()
    20
    >>> f(2).item()
    2
    """
    return UserContext(default_value)
