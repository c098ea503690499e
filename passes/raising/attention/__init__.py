"""Attention in plain ``linalg``: expressions of elements, and the patterns among them."""
