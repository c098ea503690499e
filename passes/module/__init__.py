"""Passes over whole modules on tensors: they change layers, launches, constants and layouts."""
