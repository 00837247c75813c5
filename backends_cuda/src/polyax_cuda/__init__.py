"""NVIDIA GPUs through CuPy. Read plugin.py, then backend.py, then runtime.py; check.py needs no GPU."""
