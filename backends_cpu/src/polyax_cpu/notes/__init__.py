"""Notes of what native code runs, while a trace is taken."""
