"""What programs that import ``jax`` read in error texts."""

from __future__ import annotations

import re

_FUNCTIONS = re.compile(r"(?<!<class ')\bpolyax\.(?=[a-zA-Z])")


def in_jax_names(text: str) -> str:
    """``text`` with polyax's functions under the name that the program knows; classes are shown as they are.

    >>> in_jax_names("Use polyax.lax.cond, got <class 'polyax.numpy.int32'>")
    "Use jax.lax.cond, got <class 'polyax.numpy.int32'>"
    """
    return _FUNCTIONS.sub("jax.", text)
