"""Measures ATen ops, compiled through the PyTorch door one by one, against f64:
docs/reference/aten.md."""
