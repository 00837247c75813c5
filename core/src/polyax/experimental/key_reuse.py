"""Finding random keys that are used twice.

With ``config.debug_key_reuse`` every program is looked at before it is compiled, and every array of keys that it is
given: a key that numbers were made of, or that was split, is consumed, and consuming it again raises KeyReuseError.
``random.clone`` gives a key that may be used again. Keys as words, those of ``random.PRNGKey``, aren't followed.

>>> import polyax
>>> with polyax.debug_key_reuse(True):
...     key = polyax.random.key(0)
...     x = polyax.random.normal(key)
...     y = polyax.random.normal(key)  # doctest: +ELLIPSIS
Traceback (most recent call last):
polyax.ir.errors.KeyReuseError: Previously-consumed key passed to ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polyax.control.key_uses import KeyForward as Forward
from polyax.control.key_uses import KeyReuseSignature as KeyReuseSignature
from polyax.control.key_uses import KeySink as Sink
from polyax.control.key_uses import KeySource as Source
from polyax.control.key_uses import key_use
from polyax.ir.errors import KeyReuseError as KeyReuseError
from polyax.ir.jaxpr import ClosedJaxpr, Jaxpr
from polyax.ops.keys import assert_consumed_value_p, consume_p
from polyax.trace.flat import trace_tree

__all__ = [
    "Forward",
    "KeyReuseError",
    "KeyReuseSignature",
    "Sink",
    "Source",
    "assert_consumed",
    "assert_unconsumed",
    "check_key_reuse",
    "check_key_reuse_jaxpr",
    "consume",
    "function_type_signature",
]


def function_type_signature(fun: Callable[..., Any], *args: Any) -> KeyReuseSignature:
    """What ``fun`` does with the keys among ``args``: leaves of these are counted, and leaves of the result.

    Raises:
      KeyReuseError: it consumes one twice.

    >>> from polyax import random
    >>> function_type_signature(random.split, random.key(0))
    KeyReuseSignature(Sink(0), Source(0))
    """
    return key_use(trace_tree(fun, args)[0]).signature


def check_key_reuse(fun: Callable[..., Any], /, *args: Any) -> None:
    """Raises KeyReuseError if ``fun`` consumes a key twice; it is traced, and doesn't run."""
    function_type_signature(fun, *args)


def check_key_reuse_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raises KeyReuseError if a program consumes a key twice."""
    key_use(jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, [None] * len(jaxpr.constvars)))


def consume(key: Any) -> Any:
    """The same key, which is consumed now."""
    return consume_p.bind1(key)


def assert_unconsumed(key: Any) -> None:
    """Where a program is looked at: raises AssertionError if any of the keys is consumed."""
    assert_consumed(key, False)


def assert_consumed(key: Any, value: Any = True) -> None:
    """Where a program is looked at: raises AssertionError unless the keys are consumed as ``value``, a bool for all of
    them or an array of bools, says."""
    nested = np.asarray(value, bool).tolist()
    assert_consumed_value_p.bind1(key, value=_hashable(nested))


def _hashable(x: Any) -> Any:
    return tuple(map(_hashable, x)) if isinstance(x, list) else x
