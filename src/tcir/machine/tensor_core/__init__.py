"""The tcgen05 instructions of the tensor core: mma, cp, shift and commit."""
