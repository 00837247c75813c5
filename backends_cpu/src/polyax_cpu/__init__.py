"""The CPU backend: kernels, loops and whole calls as native code by LLVM; BLAS, LAPACK and Fourier transforms."""
