"""Whole networks through the PyTorch door, against f64: docs/networks.md."""
