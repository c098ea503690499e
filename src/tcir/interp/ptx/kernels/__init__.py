"""LLVM IR of one instruction's computation in the 32 lanes of a warp."""
