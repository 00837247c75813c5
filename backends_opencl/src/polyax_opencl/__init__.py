"""OpenCL devices of any vendor. Read plugin.py, then backend.py, then runtime.py."""
