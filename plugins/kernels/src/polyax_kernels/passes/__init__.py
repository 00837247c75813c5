"""Passes: functions from programs to programs, graphs to graphs, kernels to kernels."""
