"""Hardware questions that documents do not settle: what is assumed, and what else it could be.

Nothing else in the machine encodes such a choice. `Machine(assumptions=Assumptions(...))` switches.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Assumption:
    """One open question."""

    name: str
    question: str
    default: Any
    alternatives: tuple[Any, ...]
    evidence: str
    used_by: str


REGISTRY = (
    Assumption(
        "shift_quarters",
        "Does a stand-alone tcgen05.shift move the quarter its address names, or all four?",
        "one",
        ("one", "all"),
        "PTX ISA 9.7.16.9 speaks of a warp and 31 rows; CUTLASS's CuTeDSL primitives document an "
        "exception row per sub-partition, and .ashift moves all four",
        "tcgen05.shift",
    ),
    Assumption(
        "ashift_then_cp",
        "Is an .ashift mma ordered before a later tcgen05.cp.4x256b of the same thread?",
        "unordered",
        ("unordered", "ordered"),
        "PTX ISA 9.7.16.6 lists shift -> cp.4x256b, not mma -> cp",
        "refreshing the halo of a shifted slab",
    ),
)


@dataclass(frozen=True)
class Assumptions:
    """The choices in force."""

    shift_quarters: str = "one"
    ashift_then_cp: str = "unordered"

    def __post_init__(self) -> None:
        for entry in REGISTRY:
            value = getattr(self, entry.name)
            if value not in entry.alternatives:
                raise ValueError(f"expected {entry.name} in {entry.alternatives}, got {value!r}")


assert {f.name for f in fields(Assumptions)} == {a.name for a in REGISTRY}
