"""Kernels whose sums are fragments: in the registers of warps."""
