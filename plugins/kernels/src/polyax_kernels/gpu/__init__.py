"""The generic GPU path: what OpenCL, CUDA and their like share. Read runtime.py, then backend.py, then emitter.py."""
