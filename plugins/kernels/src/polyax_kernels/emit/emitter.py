"""The emitter protocol: what a code generator for one language offers to the kernel walker (tagless final).

``T`` is the language's value: ``str`` for the C family, ``llvmlite.ir.Value`` for LLVM, ``np.ndarray`` for the NumPy
interpreter, which defines what kernels mean. An emitter knows nothing of kernels, expressions or schedules.

The order of calls is that of the program: ``local`` declarations, then the loops of the grid, outermost first. Inside
all of them is one *point*: stage after stage with ``barrier`` between two. A stage evaluates the folds and values that
don't depend on its own loops, then opens these. Where a group of threads shares a point:

* a loop with the hint ``group`` may be dealt out to the threads (thread t takes iterations t, t + threads, ...); it is
  the innermost loop of a stage, and what is inside it belongs to one thread;
* everything else inside the point is reached by all threads alike, so that barriers may stand there. A fold with the
  hint ``group`` may be dealt out and its partial results combined; all threads need what it gives;
* stores outside of ``group`` loops must happen once: one thread does them;
* what a stage stores, to scratch or to other memory, later stages read, and later folds: ``barrier`` makes it visible;
* a thread that goes on to another point needs a barrier before it, since scratch memory is used again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from polyax.ir.errors import PluginError

T = TypeVar("T")


class Emitter(Protocol[T]):
    """Values are typed by the dtype that each call names; booleans are the language's own truth values. Indices,
    extents and offsets are of the schedule's ``index_dtype``.

    The walker computes float16 and bfloat16 in float32, so that operations never see them: only ``load``, ``store``,
    ``cast``, ``bitcast``, ``param`` and ``const`` do.
    """

    @abstractmethod
    def supports(self, name: str, dtype: np.dtype) -> bool:
        """Whether ``op`` knows this operation of the scalar table; the walker decomposes all others.

        It must know what folds combine by (``add mul max min and or xor``), comparisons and ``select``, and ``div``
        on integers.
        """
        ...

    @abstractmethod
    def const(self, value: Any, dtype: np.dtype) -> T: ...

    @abstractmethod
    def param(self, position: int, dtype: np.dtype) -> T:
        """A scalar launch argument."""
        ...

    @abstractmethod
    def op(self, name: str, dtype: np.dtype, *args: T) -> T:
        """A scalar operation of the table, with its total semantics; ``dtype`` is that of the (last) operand."""
        ...

    @abstractmethod
    def cast(self, x: T, source: np.dtype, target: np.dtype) -> T:
        """Floats to integers saturate, NaN gives 0, integers to narrower ones wrap; to bool means ``x != 0``."""
        ...

    @abstractmethod
    def bitcast(self, x: T, source: np.dtype, target: np.dtype) -> T:
        """The same bits as another type of the same width."""
        ...

    @abstractmethod
    def load(self, slot: int, offset: T, dtype: np.dtype, mask: T | None = None, other: T | None = None) -> T:
        """``offset`` counts elements. Where ``mask`` is false nothing is read."""
        ...

    @abstractmethod
    def store(self, slot: int, offset: T, value: T, dtype: np.dtype, mask: T | None = None) -> None: ...

    def some(self, mask: T) -> T:
        """Whether ``mask`` holds for any of the points that are computed at once; itself, where that is one."""
        return mask

    atomic: bool = False
    """Whether stores that combine go to ``accumulate``."""

    def accumulate(
        self, slot: int, offset: T, value: T, dtype: np.dtype, mask: T | None, name: str, combined: Callable[[T, T], T]
    ) -> None:
        """``b[offset] = combined(b[offset], value)`` where ``mask`` holds, while other threads may do the same there;
        ``name`` is the operation that ``combined`` emits."""
        raise PluginError(f"{type(self).__name__} is atomic, and has no accumulate")

    @abstractmethod
    def loop(self, start: T, stop: T, body: Callable[[T], None], *, hint: str = "") -> None:
        """``for i in range(start, stop): body(i)``; an emitter of code calls ``body`` once.

        ``hint`` holds words: ``parallel`` (the first grid axis), ``vector`` (the innermost loop; its iterations are
        independent), ``group`` (a stage's innermost loop, whose iterations are independent: the threads that share a
        grid point may deal them out), ``near`` (what iterations read and write is the same, or next to each other in
        memory), ``unroll`` (if it is short, better unrolled than made vectors of). None of them changes results.
        """
        ...

    @abstractmethod
    def fold(
        self,
        stop: T,
        inits: Sequence[T],
        dtypes: Sequence[np.dtype],
        body: Callable[[T, Sequence[T]], Sequence[T]],
        *,
        combines: Sequence[str] = (),
        hint: str = "",
    ) -> Sequence[T]:
        """A loop from 0 that carries values: ``body`` gets the index and the carries and returns the next carries.

        ``combines`` names the operation by which the body combines each carry: its last act is
        ``op(combines[n], dtypes[n], carries[n], value)``. It is empty where the body is anything else (an outer axis
        of a fold over several, argmax); the order of these combinations is free. ``hint`` holds words: ``group``
        where threads that share a grid point all need the result and none is alone with it, ``near`` as for loops.
        """
        ...

    @abstractmethod
    def local(self, slot: int, dtype: np.dtype, size: int) -> None:
        """Declares scratch memory, addressed by ``slot`` in loads and stores. Called before everything else."""
        ...

    def transpose(
        self,
        source: int,
        start: T,
        pitch: int,
        target: int,
        side: int,
        dtype: np.dtype,
        sizes: tuple[T, T] | None = None,
    ) -> bool:
        """Writes ``target[i * side + j] = source[start + j * pitch + i]`` for ``i`` and ``j`` below ``sizes``, or else
        below ``side``, if it has a better way than two loops; else it does nothing, and says so. What else is in the
        square it may overwrite."""
        return False

    def totals(self, source: int, target: int, side: int, lanes: int, combine: str, dtype: np.dtype) -> bool:
        """Writes to ``target[row]``, for ``row`` below ``side``, what the first ``lanes`` elements of
        ``source[row * side:]`` combine to, if it has a better way than a fold for each row; else it does nothing, and
        says so. ``source`` it may overwrite."""
        return False

    def warp_barrier(self) -> None:
        """As ``barrier``, between stages of the first 32 threads of a group alone."""
        self.barrier()

    @abstractmethod
    def barrier(self) -> None:
        """Separates stages that share scratch memory between threads; nothing where one thread owns a grid point."""
        ...
