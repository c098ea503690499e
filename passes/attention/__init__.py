"""Attention: one kernel for each core; scores never leave the SM."""
