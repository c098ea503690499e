"""Compiled replay: executes a trace by calls of small kernels, which are machine code for the 32
lanes of a warp in several CTAs.

One loop runs through the steps for a few CTAs at a time, so that their registers stay in the
processor's caches. A kernel computes the same bits as the rule of its instruction. An instruction
without a kernel is executed by its rule in numpy, between two runs of the loop. A step of another
type (tensor memory, matrices), or a load that polls, leaves the whole trace to numpy. The leader is
replayed by the same kernels, and the replay is compared with the leader's run on the machine.
"""
