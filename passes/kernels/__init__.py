"""Kernels that are composed of a product, a main loop (core), a scheduler and stores, and the legal
combinations of these."""
