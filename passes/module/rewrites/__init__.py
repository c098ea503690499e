"""Rewrites of a module on tensors, each of one kind of op, with which the passes here begin."""
