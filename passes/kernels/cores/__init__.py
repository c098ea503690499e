"""Main loops: which instruction multiplies, and where the sums are kept."""
