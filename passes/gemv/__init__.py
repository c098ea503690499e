"""Block-scaled GEMV on tensor cores: N is padded to an N that the mma supports."""
