"""Kernels written as LLVM IR: the emitter, its loops over vectors, and what they ask of memory."""
