"""``polyax.debug``: looking into programs while they run."""

from __future__ import annotations

import functools
import logging
import string
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from polyax.control.callback import debug_call, debug_print_p
from polyax.control.flow.looping import length_of
from polyax.control.flow.parts import scan_in_parts
from polyax.control.inspection import inspect_sharding_p
from polyax.ir.effects import DebugEffect as DebugEffect
from polyax.ir.effects import OrderedDebugEffect as OrderedDebugEffect
from polyax.meshes.sharding import Sharding
from polyax.runtime.arrays.devices import effects_barrier
from polyax.runtime.debugging.progress import Board, Turns, shown_on, watched_by_a_person
from polyax.runtime.running.breakpoints import breakpoint as breakpoint
from polyax.runtime.running.callbacks import debug_callback as callback
from polyax.runtime.running.callbacks import on_arrays
from polyax.runtime.telling.shardings import drawn_sharding
from polyax.trace.tree import tree_leaves

__all__ = [
    "DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "inspect_array_sharding", "log", "print",
    "progress", "scan", "visualize_array_sharding", "visualize_sharding",
]  # fmt: skip

_print = print
_logger = logging.getLogger(__name__)


class _Check(string.Formatter):
    """Goes through a format without values, and complains about arguments that it doesn't use."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return value

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        positional = [x for n, x in enumerate(args) if n not in used_args]
        named = [n for n in kwargs if n not in used_args]
        for kind, unused in (("positional", positional), ("keyword", named)):
            if unused:
                raise ValueError(
                    f"Unused {kind} arguments to `jax.debug.print`: {unused}. Name each of them in the text: "
                    "debug.print('{}', x) or debug.print('{x}', x=x). An f-string names none."
                )


def print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: Any,
) -> Any:
    """Prints ``fmt.format(*args, **kwargs)`` each time that the program comes here, on whatever device it runs.

    Arrays look as NumPy's print options had it when this was called. Without ``fmt``, it is a function that prints so.

    Args:
      fmt: a format string; f-strings would show tracers.
      ordered: prints happen in the order of the program.
      partitioned: in a program for several devices, each prints its parts of the arrays.

    Raises:
      ValueError, IndexError, KeyError: ``fmt`` leaves out an argument, or asks for one that there isn't.

    >>> print("x = {}", 1.5)
    x = 1.5
    """
    settings = {"ordered": ordered, "partitioned": partitioned, "skip_format_check": skip_format_check}
    if fmt is None:
        return functools.partial(print, _use_logging=_use_logging, **settings)
    if not skip_format_check:
        _Check().format(fmt, *args, **kwargs)
    show = on_arrays(_printer(fmt, _use_logging))
    debug_call(debug_print_p, show, args, kwargs, ordered=ordered, partitioned=partitioned, fmt=fmt)


def _printer(fmt: str, to_log: bool) -> Callable[..., None]:
    options: dict[str, Any] = {k: v for k, v in np.get_printoptions().items() if k != "override_repr"}

    def show(*args: Any, **kwargs: Any) -> None:
        with np.printoptions(**options):  # they belong to a thread, and this runs in another one
            text = fmt.format(*args, **kwargs)
        if to_log:
            _logger.info("%s", text)
        else:
            _print(text)

    return show


log = functools.partial(print, _use_logging=True)
"""``print`` to the log, at the level ``INFO``."""


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Prints which devices have which part of an array of ``shape``, which has one or two dimensions.

    Args:
      scale: how high a picture of one row of parts is.
      min_width, max_width: how wide a part is at least and at most, in characters, with the lines beside it.
      use_color, color_map: kept for compatibility; parts are told apart by lines.

    Raises:
      ValueError: the array has another number of dimensions.
    """
    _print(drawn_sharding(shape, sharding, scale=scale, min_width=min_width, max_width=max_width))


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """``visualize_sharding`` of an array.

    >>> import polyax
    >>> visualize_array_sharding(polyax.device_put(np.zeros(4), polyax.devices("reference")[0]))
    ┌───────────┐
    │REFERENCE 0│
    └───────────┘
    """
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], None]) -> None:
    """Calls ``callback`` with the sharding of each array in a pytree.

    How values of a program lie is known when it is compiled: ``callback`` is called then, once for each program that is
    made. Under ``vmap`` it hears of all examples together; inside ``shard_map``, of how blocks are cut further.

    >>> import polyax
    >>> x, told = polyax.device_put(np.zeros(4), polyax.devices("reference")[0]), []
    >>> polyax.jit(lambda x: inspect_array_sharding(x, callback=told.append))(x)
    >>> told
    [SingleDeviceSharding(device=ReferenceDevice(id=0), memory_kind=device)]
    """
    for x in tree_leaves(value):
        inspect_sharding_p.bind(x, callback=callback)


@contextmanager
def progress(*, after: float = 0.5, shown: bool | None = None, file: Any = None) -> Generator[None]:
    """A block that shows how far things are: compilations that take longer than ``after`` seconds, and ``debug.scan``.

    Bars are tqdm's. The block ends when what it launched has counted all its turns.

    Args:
      after: in seconds.
      shown: whether to show them; by default in terminals and notebooks, so that logs of scripts stay as they are.
      file: where to write, other than standard error; notebooks have bars of their own.

    Raises:
      ImportError: something is to be shown, and tqdm isn't installed.

    >>> import polyax
    >>> with progress(shown=False):
    ...     polyax.jit(lambda x: x + 1)(1).item()
    2
    """
    if not (watched_by_a_person() if shown is None else shown):
        yield
        return
    with shown_on(Board(after, file)):
        yield
        effects_barrier()


def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    *,
    name: str = "scan",
    parts: int = 100,
) -> tuple[Any, Any]:
    """``lax.scan`` that tells a ``progress`` block how far it is; outside of such blocks nobody listens.

    The loop becomes one of at most ``parts`` loops, with a message to the host after each; its turns are the same. In a
    derivative the forward pass counts.

    Args:
      f, init, xs, length, reverse: as of ``lax.scan``.
      name: what the bar is called.
      parts: how often to tell at the most.

    Raises:
      ValueError: ``parts`` isn't positive, or what ``lax.scan`` raises.

    >>> last, sums = scan(lambda c, x: (c + x, c + x), 0, np.arange(1, 6, dtype=np.int32), parts=2)
    >>> last.item(), sums.tolist()
    (15, [1, 3, 6, 10, 15])
    """
    if parts < 1:
        raise ValueError(f"debug.scan tells of its turns in at least one part, got parts={parts}")
    turns = Turns(name, length_of(xs, length))
    told = lambda count: callback(functools.partial(turns.advance, count))
    return scan_in_parts(f, init, xs, turns.total, reverse, parts, told)
