"""tcgen05.mma, cp, shift and commit."""
