"""Tensor memory and the tcgen05 tensor core (PTX ISA 9.7.16).

As in hardware, mma, cp, shift and commit act once per active thread; if more than one lane executes
such an instruction, that is reported as `double-issue`. alloc, dealloc, ld, st and wait are
warp-collective.
"""

from tcir.interp.ptx.isa.tcgen05 import access, alloc, commit, copy, mma  # noqa: F401
