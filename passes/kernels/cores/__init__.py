"""Main loops: what multiplies, and where the sums are."""
