"""CUDA C as a dialect: the few names that NVRTC lacks without headers."""

from __future__ import annotations

from polyax_kernels.api.gpu import SingleSourceEmitter

HEADER = """\
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
"""


class CudaEmitter(SingleSourceEmitter):
    """The dialect that CUDA C and HIP share, as NVRTC takes it."""

    header = HEADER
    warp_barrier_words = "__syncwarp();"
