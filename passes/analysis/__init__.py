"""Analyses of programs on tensors that several passes share: contractions, moves, wrappers."""
