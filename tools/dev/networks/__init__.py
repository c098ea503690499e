"""Compiles whole networks through the PyTorch door and compares their results with f64:
docs/reference/networks.md."""
