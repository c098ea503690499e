"""Compiled replay: a trace as calls of small kernels, machine code for the 32 lanes of a warp in
some CTAs. One loop runs through the steps for a few CTAs at a time, whose registers stay close to
the processor.

A kernel computes the same bits as the rule of its instruction; an instruction without a kernel is
executed by that rule, between two runs of the loop. A step of another kind (tensor memory,
matrices), or a load that polls, leaves the whole trace to numpy. The leader is replayed by the same
kernels and compared with what it did on the machine.
"""
