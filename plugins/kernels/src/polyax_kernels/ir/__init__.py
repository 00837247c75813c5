"""Kernels, the graphs of them, and the expressions that they compute."""
