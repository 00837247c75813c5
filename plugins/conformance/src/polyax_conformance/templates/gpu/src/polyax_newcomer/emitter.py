"""The words in which the device's language differs from C99. This is a file to fill in.

Here the language is C itself: a function for one thread, which asks ``at`` which thread it is.
"""

from __future__ import annotations

import numpy as np
from polyax_kernels.api.emitters import CEmitter, Operand
from polyax_kernels.api.gpu import GpuEmitter

WHERE = ("thread", "group", "threads", "groups")


class NewcomerEmitter(GpuEmitter):
    """The dialect; loops, stores and schedules are inherited."""

    kernel_words = "void"
    memory_words = ""
    local_words = ""
    barrier_words = ""
    header = f"""{CEmitter.header}
static __thread int64_t at[{2 * len(WHERE)}];
void place(const int64_t *where) {{ memcpy(at, where, sizeof at); }}
"""

    def argument(self, slot: int, operand: Operand, type: str) -> tuple[str, list[str]]:
        """An operand is memory and an offset in bytes."""
        return f"uint8_t *m{slot}, int64_t o{slot}", [f"  {type} *b{slot} = ({type} *)(m{slot} + o{slot});"]

    def function(self, name: str, dtype: np.dtype) -> str:
        """What a function of C's library is called here."""
        return name + "f" if dtype.itemsize == 4 else name

    def vector_pragma(self, reduction: str = "") -> None:
        """What tells the compiler that the iterations of the next loop are independent."""

    def thread(self, dimension: int) -> str:
        return f"at[{dimension}]"

    def group(self, dimension: int) -> str:
        return f"at[{2 + dimension}]"

    def threads(self, dimension: int) -> str:
        return f"at[{4 + dimension}]"

    def groups(self, dimension: int) -> str:
        return f"at[{6 + dimension}]"
