"""Backends whose kernels run on the host: memory, threads, launches."""
