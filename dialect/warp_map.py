"""The warps and roles of a specialised kernel: one table for tiling, planning and roles.

A kernel names its map in the attribute ``tc.warp_map``; the default is ``tcgen05``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tcir._mlir import ir
from tcir.dialect.attributes import string
from tcir.dialect.limits import QUARTERS, WARP
from tcir.errors import PassError

WARP_MAP = "tc.warp_map"
"""Attribute of a kernel: the name of its map."""

PRODUCER, MMA, EPILOGUE = "producer", "mma", "epilogue"
"""Roles used by the maps; ops name theirs in their traits."""


@dataclass(frozen=True)
class Role:
    """A kind of ``tc.role``: its warps, adjacent and ascending, and the threads that execute it."""

    kind: str
    warps: tuple[int, ...]
    threads: Literal["one", "warp"]


@dataclass(frozen=True)
class WarpMap:
    """The roles of a kernel, in the order in which assign-roles emits them.

    allocates: the role whose first warp allocates and frees tensor memory

    Warp w accesses lanes 32 * (w mod 4) and up of tensor memory (PTX ISA 9.7.16.8), so the epilogue
    is whole warpgroups: warps 4n to 4n + 3. Several of them split the columns.
    """

    roles: tuple[Role, ...]
    allocates: str

    def __post_init__(self) -> None:
        taken = [warp for role in self.roles for warp in role.warps]
        if len(set(taken)) != len(taken):
            raise ValueError(f"expected one role per warp, got warps {taken}")
        epilogue = self[EPILOGUE].warps
        if epilogue[0] % QUARTERS or len(epilogue) % QUARTERS:
            raise ValueError(
                f"expected an epilogue of whole warpgroups (warps 4n to 4n + 3), got {epilogue}"
            )

    def __getitem__(self, kind: str) -> Role:
        return next(role for role in self.roles if role.kind == kind)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the roles."""
        return tuple(role.kind for role in self.roles)

    @property
    def warps(self) -> int:
        """Warps of a CTA, including those without a role below the highest."""
        return 1 + max(warp for role in self.roles for warp in role.warps)

    @property
    def allocating_warp(self) -> int:
        """The warp that allocates and frees tensor memory."""
        return self[self.allocates].warps[0]

    def threads(self, kind: str) -> int:
        """Number of threads that execute the role."""
        role = self[kind]
        return len(role.warps) * (WARP if role.threads == "warp" else 1)


TCGEN05 = "tcgen05"
TCGEN05_EPILOGUE8 = "tcgen05-epilogue8"
"""Two warpgroups drain D, each half of its columns."""
WARP_MAPS = {
    TCGEN05: WarpMap(
        (
            Role(PRODUCER, (4,), "one"),
            Role(MMA, (5,), "one"),
            Role(EPILOGUE, (0, 1, 2, 3), "warp"),
        ),
        allocates=MMA,
    ),
    TCGEN05_EPILOGUE8: WarpMap(
        (
            Role(PRODUCER, (8,), "one"),
            Role(MMA, (9,), "one"),
            Role(EPILOGUE, tuple(range(8)), "warp"),
        ),
        allocates=MMA,
    ),
}
"""Every map, by name."""


def role_kinds() -> tuple[str, ...]:
    """Names of the roles of all maps."""
    return tuple(dict.fromkeys(kind for each in WARP_MAPS.values() for kind in each.kinds))


def warp_map_of(kernel: ir.OpView) -> WarpMap:
    """The map a kernel names; `PassError` if it is not in the table."""
    name = string(kernel, WARP_MAP) if WARP_MAP in kernel.attributes else TCGEN05
    if name not in WARP_MAPS:
        raise PassError(
            f"expected {WARP_MAP} to be one of {', '.join(WARP_MAPS)}, got {name}", kernel.location
        )
    return WARP_MAPS[name]
