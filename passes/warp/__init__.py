"""Warp-level matrix products: ldmatrix, mma.sync, cp.async, TMA."""
