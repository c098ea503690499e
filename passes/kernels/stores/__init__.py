"""Epilogues and stores: how the sums of a tile become results in memory."""
