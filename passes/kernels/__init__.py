"""Kernels composed of products, cores, schedulers and stores, and the legal combinations of
these."""
