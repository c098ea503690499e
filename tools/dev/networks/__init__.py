"""Compiles whole networks through the PyTorch front end (door) and compares their results with f64;
the results are in docs/reference/networks.md."""
