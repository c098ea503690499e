"""Matrix instructions of a warp: mma.sync, wmma, ldmatrix, stmatrix (PTX ISA 9.7.14)."""
