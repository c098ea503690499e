"""Epilogues and stores: where results go from the sums of a tile."""
