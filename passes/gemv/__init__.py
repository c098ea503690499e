"""Block-scaled GEMV on tensor cores, with N padded to that of an mma."""
