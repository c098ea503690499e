"""Runs the CTAs of a grid in several processes (option `jobs`).

The clusters of the grid are divided into blocks, one for each worker, which is a fork of this
process. A worker runs its block as if it were a launch, and sends its accesses to global memory:
the bytes written, their values, and the bytes read. If no block touches bytes that another block
wrote, the CTAs of different blocks are independent. Then the results, counters and output of all
blocks together are those that one process would produce.

A finding, an illegal operation, a strong access to global memory, or bytes that two blocks share
end the attempt: the launch then runs again in one process, whose result always counts.
"""
