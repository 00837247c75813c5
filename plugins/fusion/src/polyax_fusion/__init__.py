"""Fusion passes over the kernel graph of ``polyax_kernels``."""
