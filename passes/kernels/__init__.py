"""Kernels by composition: products, cores, schedulers and stores, and what combines with what."""
