"""Kernels for CUDA cores."""
