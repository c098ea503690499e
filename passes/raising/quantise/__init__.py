"""`linalg` that quantises to block scales, raised to `tc`: found by pattern, proven."""
