"""`jobs`: the CTAs of a grid in several processes.

The grid is cut into blocks of clusters, one for each worker, a fork of this process. A worker runs
its block as a launch of its own and sends what it did to global memory: which bytes it wrote, with
what, and which it read. If no block touches what another one wrote, the CTAs of different blocks
have nothing to do with each other, and the blocks' results, counters and output together are those
of one process. Whatever else happens, a finding, an illegal act, a strong access of global memory,
bytes that two blocks share, ends the attempt: the launch runs in one process, whose word it always
is.
"""
