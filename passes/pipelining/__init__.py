"""Passes from a sequential tile program to asynchronous roles: rings, barriers, memory, warps."""
