"""Settings as context managers, named as in JAX: ``with polyax.debug_nans(True): ...``"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from polyax.ir.config import FLAGS, config


class Setting:
    """``setting(value)`` is a context manager that sets one flag for this thread; ``setting.value`` reads it."""

    def __init__(self, flag: str, default: Any = True) -> None:
        self._flag = flag
        self._default = default
        self.__name__ = flag
        self.__doc__ = f"Sets ``config.{flag}`` for the current thread inside a ``with`` block: {FLAGS[flag].doc}."

    def __call__(self, new_val: Any = None) -> AbstractContextManager[None]:
        value = self._default if new_val is None else new_val
        if isinstance(value, str):
            value = FLAGS[self._flag].parse(value)
        return config.override(**{self._flag: value})

    @property
    def value(self) -> Any:
        return getattr(config, self._flag)

    def __repr__(self) -> str:
        return f"<setting {self._flag}={self.value!r}>"


debug_nans = Setting("debug_nans")
debug_infs = Setting("debug_infs")
enable_x64 = Setting("enable_x64")
enable_checks = Setting("checks")
log_compiles = Setting("log_compiles")
explain_cache_misses = Setting("explain_cache_misses")
check_tracer_leaks = Setting("check_tracer_leaks")
checking_leaks = check_tracer_leaks
threefry_partitionable = Setting("threefry_partitionable")
numpy_rank_promotion = Setting("numpy_rank_promotion", "allow")
numpy_dtype_promotion = Setting("numpy_dtype_promotion", "standard")
default_matmul_precision = Setting("default_matmul_precision", "default")
auto_pcast = Setting("auto_pcast")
remove_size_one_mesh_axis_from_type = Setting("remove_size_one_mesh_axis_from_type")
default_prng_impl = Setting("default_prng_impl", "threefry2x32")


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Inside a ``with`` block, jitted functions run one operation at a time, as plain Python.

    >>> with disable_jit():
    ...     config.disable_jit
    True
    """
    return config.override(disable_jit=disable)
