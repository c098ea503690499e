"""Matrix products of warps: ldmatrix, mma.sync, cp.async, TMA."""
