"""Attention: a kernel for each core, whose scores never leave it."""
