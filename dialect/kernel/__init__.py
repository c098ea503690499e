"""Rules about whole kernels. The pass ``verify-tc-kernel`` checks them."""
