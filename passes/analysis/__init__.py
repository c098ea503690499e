"""What several passes ask of a program on tensors: contractions, moves, wrappers."""
