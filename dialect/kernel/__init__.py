"""Rules about whole kernels; ``verify-tc-kernel`` checks them."""
