"""Passes that turn the sequential program of a tile into asynchronous warp roles: rings, barriers,
memory, warps."""
