"""The tests of fusers use the helpers of the kernel compiler's tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "kernels"))
