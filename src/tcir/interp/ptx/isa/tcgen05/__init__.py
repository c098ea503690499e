"""Tensor memory and the tcgen05 tensor core (PTX ISA 9.7.16).

mma, cp, shift and commit act once per active thread, as in hardware: executing one with more than
one lane is reported as `double-issue`. alloc, dealloc, ld, st and wait are warp-collective.
"""

from tcir.interp.ptx.isa.tcgen05 import access, alloc, commit, copy, mma  # noqa: F401
