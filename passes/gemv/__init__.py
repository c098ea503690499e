"""Block-scaled GEMV on tensor cores: padded N."""
