"""The options `producer-warps`, `consumer-warps` and `epilogue-warps`: the number of warps of each
role."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTERS
from tcir.dialect.warp_map import (
    CONSUMER,
    TCGEN05,
    TCGEN05_EPILOGUE8,
    TCGEN05_EPILOGUE12,
    TCGEN05_EPILOGUE_LOAD,
    WARP_MAP,
    WARP_MAPS,
    WGMMA,
)
from tcir.errors import InputError
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.staged_load import staged_elements
from tcir.passes.emit.tile_kernel import Source
from tcir.passmanager.remarks import remark

MAPS = {
    (1, QUARTERS): TCGEN05,
    (2, QUARTERS): TCGEN05_EPILOGUE_LOAD,
    (1, 2 * QUARTERS): TCGEN05_EPILOGUE8,
    (1, 3 * QUARTERS): TCGEN05_EPILOGUE12,
}
"""Warp maps by the numbers of loading warps and of epilogue warps."""
WHO_MULTIPLIES = (
    "tcgen05.mma is an instruction of one thread, wgmma of whole warpgroups, each of which "
    "multiplies 64 of a tile's 128 rows"
)
LEGAL = {
    "producer": (
        (1, 2),
        "one thread keeps TMA busy, which copies whole boxes by itself; a second warp loads the "
        "matrices that the epilogue reads",
    ),
    "consumer": (
        (1, len(WARP_MAPS[WGMMA][CONSUMER].warps)),
        WHO_MULTIPLIES,
    ),
    "epilogue": (
        tuple(epilogue for loading, epilogue in MAPS if loading == 1),
        "warp w reads lanes 32 * (w mod 4) to + 31 of tensor memory, PTX ISA 9.7.16.8, so all 128 "
        "take whole warpgroups; with four a thread would have fewer registers than the 128 columns "
        "that it may load",
    ),
}
"""Legal numbers of warps of each role, and the reason."""


@dataclass(frozen=True)
class Warps:
    """Number of warps of each role. 0 means that a rule chooses: one warp loads, or with store=tma
    a second warp loads the matrices that the epilogue reads; one warp multiplies; four warps
    execute the epilogue."""

    producer: int = 0
    consumer: int = 0
    epilogue: int = 0

    def __post_init__(self) -> None:
        for role, (legal, why) in LEGAL.items():
            got = getattr(self, role)
            if got and got not in legal:
                raise InputError(
                    f"expected {role}-warps to be one of {', '.join(map(str, legal))}, or 0 to "
                    f"choose, got {got} ({why}); take {role}-warps={legal[0]}"
                )

    def assign(self, source: Source, staged: bool) -> list[tc.ElementOp]:
        """Sets the name of the warp map of the kernel of `source`. Returns the matrices that the
        epilogue reads through shared memory, which a separate warp loads.

        staged: whether TMA stores the kernel's results
        """
        names = source.function.attributes
        if self != Warps() and WARP_MAP in names:
            raise match_failure(
                source.op,
                f"expected either the attribute {WARP_MAP} on the function or numbers of warps as "
                "options, got both; leave one of them out",
            )
        if WARP_MAP in names:
            told = ir.StringAttr(names[WARP_MAP]).value
            staged = staged and told == TCGEN05_EPILOGUE_LOAD
        read = staged_elements(source.after) if staged and self.producer != 1 else []
        if self.producer == 2 and not read:
            raise match_failure(
                source.op,
                "expected producer-warps=1, got 2: with store=tma a second producer warp loads "
                "the matrices that the epilogue reads, and this kernel has none that TMA can "
                "load; leave it out",
            )
        if read or self != Warps():
            name = MAPS[2 if read else 1, self.epilogue or QUARTERS]
            names[WARP_MAP] = ir.StringAttr.get(name)
        if self != Warps():
            remark(source.op, f"warps by role: {_roles(name)} (warp map {name})")
        return read


def _roles(name: str) -> str:
    """The roles of a map with their warps."""
    words = []
    for role in WARP_MAPS[name].roles:
        first, last = role.warps[0], role.warps[-1]
        numbers = f"warp {first}" if first == last else f"warps {first} to {last}"
        words.append(f"{role.kind} {len(role.warps)} ({numbers})")
    return ", ".join(words)
