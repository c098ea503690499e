"""Passes over whole modules on tensors: layers, launches, constants, layouts."""
