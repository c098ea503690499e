"""Matrix products executed by warps: ldmatrix, mma.sync, cp.async, TMA."""
