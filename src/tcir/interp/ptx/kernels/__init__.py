"""What one instruction computes in the 32 lanes of a warp, as LLVM IR."""
