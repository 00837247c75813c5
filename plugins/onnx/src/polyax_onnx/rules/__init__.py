"""What primitives become in ONNX, family by family."""
