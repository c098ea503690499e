"""Raising from linalg to `tc` at the tensor level."""
