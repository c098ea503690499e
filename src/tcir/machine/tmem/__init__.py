"""Tensor memory: addresses, allocation, loads and stores."""
