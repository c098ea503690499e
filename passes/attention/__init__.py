"""Attention kernels, one for each kind of tensor core. Scores never leave the SM."""
