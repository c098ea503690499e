"""`jobs`: the CTAs of a grid in several processes.

The grid is cut into blocks of clusters, one for each worker, a fork of this process. A worker runs
its block as a launch of its own and sends its accesses to global memory: the bytes written, their
values, and the bytes read. If no block touches bytes that another one wrote, the CTAs of different
blocks are independent, and the blocks' results, counters and output together are those of one
process. A finding, an illegal act, a strong access of global memory, or bytes that two blocks share
end the attempt: the launch runs again in one process, which is always authoritative.
"""
