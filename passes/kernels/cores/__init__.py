"""Main loops (cores): which instruction multiplies, and where the sums are kept."""
