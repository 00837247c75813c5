"""``jax.interpreters.xla``: primitives run on their own, and tables that libraries add their types to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.door.legacy.dispatch import apply_primitive as apply_primitive
from polyax.runtime.contract.backend import Backend as Backend

canonicalize_dtype_handlers: dict[type, Callable[..., Any]] = {np.ndarray: lambda x: x}
"""What makes a value of a type ready for a program. A type that is added isn't asked here: ``__jax_array__`` is."""
