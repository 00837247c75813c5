"""Primitives that call a program: jit, checkpoint, functions with rules of their own."""
