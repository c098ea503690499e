"""Rewrites of a module on tensors, each for one kind of op; the passes in this folder begin with
them."""
