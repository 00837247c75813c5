"""The teaching backend: C99 through the system's compiler. Read plugin.py, then compiler.py, then backend.py."""
