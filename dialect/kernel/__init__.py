"""Rules about whole kernels, which ``verify-tc-kernel`` checks."""
