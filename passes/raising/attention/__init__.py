"""Attention in plain ``linalg``: what elements are made of, and which of that is attention."""
