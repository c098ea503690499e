"""Measures whole networks, compiled through the PyTorch door, against f64:
docs/reference/networks.md."""
