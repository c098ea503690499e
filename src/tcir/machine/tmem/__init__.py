"""Tensor memory: places, allocation, loads and stores."""
