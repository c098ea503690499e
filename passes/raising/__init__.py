"""Raising of linalg ops to `tc` ops at the tensor level."""
