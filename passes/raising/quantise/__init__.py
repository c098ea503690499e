"""Recognises `linalg` that quantises to block scales by a pattern, proves that it computes the same
codes, and raises it to `tc`."""
