"""From a tile program in order to asynchronous roles: rings, barriers, memory, warps."""
