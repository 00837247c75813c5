"""The teaching backend: C99 through the system's compiler. Read plugin.py, then jit.py, then backend.py."""
