"""What tests of the cpu ask of the processor that they run on."""

from __future__ import annotations

import pytest

from polyax_cpu.libraries import registers

in_registers = pytest.mark.skipif(registers.why_not() is not None, reason=str(registers.why_not()))
"""Of code that sums in blocks of registers."""
in_many_registers = pytest.mark.skipif(registers.why_few() is not None, reason=str(registers.why_few()))
"""Of code that sums in large ones, which only the widest vectors have enough of."""
