"""Rewrites of a module on tensors, each of one kind of op, that passes of this room begin with."""
