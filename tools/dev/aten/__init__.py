"""Compiles ATen ops one by one through the PyTorch door and compares their results with f64:
docs/reference/aten.md."""
