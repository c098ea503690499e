"""Analyses of programs on tensors that several passes share: contractions, ops that only move data,
and wrapper ops such as padding."""
