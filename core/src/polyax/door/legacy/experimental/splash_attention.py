"""``jax.experimental.pallas.ops.tpu.splash_attention``: kernels for TPUs, which no platform of polyax is.

Libraries import these names, and use them on TPUs alone.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def _refused(name: str) -> Any:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name} makes a kernel for TPUs, which no platform of polyax is; jax.nn.dot_product_attention runs on all"
        )

    return refused


def _refusing(*names: str) -> SimpleNamespace:
    return SimpleNamespace(**{name: _refused(name) for name in names})


splash_attention_mask = _refusing("CausalMask", "FullMask", "LocalMask", "MultiHeadMask", "NumpyMask")
splash_attention_kernel = _refusing("make_splash_mha", "make_splash_mqa", "BlockSizes", "SegmentIds")
