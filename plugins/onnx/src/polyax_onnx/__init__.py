"""A backend for a whole-graph engine: programs become ONNX models, which ONNX Runtime runs. Read plugin.py, backend.py,
then writer.py and rules."""
