"""Orderings that kernels in production rely on although no document promises them.

Each is an error under the profile "isa" and a warning under "silicon": see
`tcir.machine.findings.Unpromised`. The orderings between two conflicting accesses are in
`fence_hazards` and `race_hazards`.
"""

from __future__ import annotations

from tcir.machine.findings import Unpromised

RELAXED_BARRIER = "relaxed-cluster-barrier"
"""The kind of a finding where only relaxed arrivals at a cluster barrier lie between the two."""
RELEASING_ARRIVAL = "barrier.cluster.arrive without .relaxed, or a fence before it"
"""The synchronisation that such a finding lacks."""
RELAXED_ORDER = "order of memory by a relaxed arrival"
"""The order on which such a program relies."""


def _relaxed(ships: str) -> Unpromised:
    return Unpromised("9.7.13.3", ships, RELAXED_ORDER)


INIT_THEN_RELAXED_BARRIER = _relaxed("CUTLASS's examples 70 and 72a")
ACCESS_THEN_RELAXED_BARRIER = _relaxed("JAX's Mosaic GPU")
PAIR_WITHOUT_MEETING = Unpromised(
    "9.7.16.5", "CUTLASS's Blackwell tutorials 04 and 05", "that the peer is there"
)
SPARE_PHASE = Unpromised("9.7.13.15.5", "CuTe DSL (producer_tail)", "that the phase may stay open")
STORE_AT_THE_END = Unpromised(
    "9.7.9.25.4",
    "DeepGEMM and CUTLASS (store_tail)",
    "that the store has read shared memory before the CTA's end frees it",
)
INIT_WITHOUT_FENCE = Unpromised("9.7.13.4", "Triton and Gluon")
INIT_AGAIN = Unpromised(
    "9.7.13.15.9",
    "ThunderKittens' templates for Hopper, CuTe DSL's tutorials",
    "an mbarrier that is initialised twice",
)
OVERTAKEN_WAIT = Unpromised(
    "9.7.13.15.16", "CUTLASS's Blackwell tutorial 05", "that it ends after the next one"
)
SETMAXNREG = "9.7.19.5"
SETMAXNREG_FOR_NOTHING = Unpromised(SETMAXNREG, "Triton's attention", "one for nothing")
SETMAXNREG_APART = Unpromised(
    SETMAXNREG, "CUTLASS's example 77", "what warps of one warpgroup do apart"
)
DESCRIPTOR_CONSTANT = Unpromised("9.7.16.4.1", "JAX's Mosaic GPU", "that 0 works")
MOVED_AFTER_THE_FENCE = Unpromised(
    "9.7.15.7",
    "nvcc's code for accumulators that C++ sets to zero or copies (ptxas makes them a constant, or "
    "serialises the wgmma)",
    "that D may be set to zero or copied after wgmma.fence",
)
COPIED_IN_FLIGHT = Unpromised(
    "9.7.15.7",
    "nvcc's code for ThunderKittens' linear_attention (ptxas serialises the wgmma: remark C7519)",
    "that a mov waits for the wgmma whose result it copies",
)
COMMIT_ADDRESS = Unpromised("9.7.16.12.1", "ThunderKittens", "an address of another kind")


def last_use_of_nothing(words: str, name: str) -> Unpromised:
    """Describes the ordering on which a `lastuse` of an empty collector buffer relies. words:
    qualifiers of the collector; name: the operand, "A" or "B".
    """
    return Unpromised(
        "9.7.16.10.9",
        "NVFP4 kernels for B200",
        f"that {words} of an empty buffer reads {name} from memory",
    )
