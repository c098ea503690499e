"""The warps and roles of a warp-specialised kernel, in one table that tiling, memory planning and
role assignment share.

A kernel names its warp map in the attribute ``tc.warp_map``; the default is ``tcgen05``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tcir._mlir import ir
from tcir.dialect.attributes import string
from tcir.dialect.limits import QUARTERS, SETMAXNREG, WARP, WARPGROUP, launch_registers
from tcir.dialect.operation import traits_of
from tcir.errors import PassError

WARP_MAP = "tc.warp_map"
"""Attribute of a kernel: the name of its map."""

PRODUCER, MMA, EPILOGUE, CONSUMER = "producer", "mma", "epilogue", "consumer"
EPILOGUE_LOAD = "epilogue_load"
SOFTMAX = ("softmax0", "softmax1")
"""Roles used by the maps; ops name theirs in their traits, or in `FOR_ROLE`."""
FOR_ROLE = "tc.for_role"
"""Attribute of an op: the role that executes it, instead of that of its traits."""

_WARPS = WARPGROUP // WARP


@dataclass(frozen=True)
class Role:
    """A warp role of a kernel, which a ``tc.role`` op of this kind implements.

    warps: numbers of its warps, which are adjacent and ascending
    threads: threads of each warp that execute it
    registers: registers per thread after redistribution; None: as many as at launch
    """

    kind: str
    warps: tuple[int, ...]
    threads: Literal["one", "warp"]
    registers: int | None = None


@dataclass(frozen=True)
class WarpMap:
    """The roles of a kernel, in the order in which assign-roles emits them.

    allocates: the role whose first warp allocates and frees tensor memory; "": no role does

    Warp w accesses the 32 lanes of tensor memory from 32 * (w mod 4) on (PTX ISA 9.7.16.8), so a
    role that all threads of its warps execute consists of whole warpgroups (warps 4n to 4n + 3). If
    an epilogue has several warpgroups, each takes a part of the columns.

    Either all roles state a number of registers or none does. The number applies to a whole
    warpgroup, because all its warps execute setmaxnreg, including warps without a role.
    """

    roles: tuple[Role, ...]
    allocates: str = ""

    def __post_init__(self) -> None:
        taken = [warp for role in self.roles for warp in role.warps]
        if len(set(taken)) != len(taken):
            raise ValueError(f"expected one role per warp, got warps {taken}")
        for role in self.roles:
            if role.threads == "warp" and (role.warps[0] % QUARTERS or len(role.warps) % QUARTERS):
                raise ValueError(
                    f"expected {role.kind} of whole warpgroups (warps 4n to 4n + 3), got "
                    f"{role.warps}"
                )
        if any(role.registers is not None for role in self.roles):
            self._check_shares()

    def _check_shares(self) -> None:
        for role in self.roles:
            if role.registers not in SETMAXNREG:
                raise ValueError(
                    f"expected registers of {role.kind} to be {SETMAXNREG}, got {role.registers}"
                )
        shares, groups = self.register_shares, self.warps // _WARPS
        if (
            len({(w // _WARPS, role.registers) for role in self.roles for w in role.warps})
            != groups
        ):
            by_role = {role.kind: (role.warps, role.registers) for role in self.roles}
            raise ValueError(f"expected one share per warpgroup, got {by_role}")
        most = launch_registers(groups * WARPGROUP) * groups
        if sum(shares) > most:
            raise ValueError(
                f"expected shares of at most {most} registers together, got {shares}, "
                f"{sum(shares)}: the SM has no more for {groups * WARPGROUP} threads"
            )

    @property
    def register_shares(self) -> tuple[int, ...]:
        """Registers per thread of each warpgroup, in order; empty if no role states a number of
        registers."""
        shares = {w // _WARPS: r.registers for r in self.roles if r.registers for w in r.warps}
        return tuple(shares[group] for group in sorted(shares))

    def __getitem__(self, kind: str) -> Role:
        return next(role for role in self.roles if role.kind == kind)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the roles."""
        return tuple(role.kind for role in self.roles)

    @property
    def warps(self) -> int:
        """Number of warps of a CTA, including warps without a role. The last warp is the last one
        of a role or, if registers are redistributed, the last one of that role's warpgroup."""
        warps = 1 + max(warp for role in self.roles for warp in role.warps)
        return -(-warps // _WARPS) * _WARPS if self.register_shares else warps

    @property
    def allocating_warp(self) -> int:
        """The warp that allocates and frees tensor memory."""
        return self[self.allocates].warps[0]

    @property
    def warps_of_quarter(self) -> int:
        """Number of warps of one role that access the same sub-partition of tensor memory; 0 if no
        role accesses tensor memory."""
        sharing = (role for role in self.roles if role.kind in (EPILOGUE, *SOFTMAX))
        return max((len(role.warps) // QUARTERS for role in sharing), default=0)

    def threads(self, kind: str) -> int:
        """Number of threads that execute the role."""
        role = self[kind]
        return len(role.warps) * (WARP if role.threads == "warp" else 1)


TCGEN05 = "tcgen05"
TCGEN05_EPILOGUE_LOAD = "tcgen05-epilogue-load"
"""A warp of its own loads matrices for the epilogue, the producer operands only."""
WGMMA = "wgmma"
"""Hopper: two warpgroups multiply 64 rows each, and store them; one more warp loads. Three warps
share a quarter of the SM's registers, 168 for each thread: enough for 128 sums."""
WGMMA_PROMOTED = "wgmma-promoted"
"""The same with a warpgroup that loads, and leaves most of its registers to those that multiply:
they hold partial sums beside the sums."""
WGMMA_ATTENTION = "wgmma-attention"
"""Three warpgroups of 64 queries with most of the registers: of heads of 64 elements they hold the
scores, sums, and exponentials as A."""
WGMMA_ONE = "wgmma-one"
"""One warpgroup, 64 rows: more CTAs where a whole tile each would leave SMs without any."""
WGMMA_THREE = "wgmma-three"
"""Three warpgroups, 192 rows: 33 * 2^n tiles of a layer of 49 * 2^n pixels, a number that 132 SMs
share out evenly. 152 registers for each thread: enough for 64 sums and their rounded results."""
WGMMA_COMPUTED = "wgmma-computed"
"""A warpgroup of its own computes an operand's tiles from those that TMA loads: 152 registers for
each thread."""
TCGEN05_EPILOGUE8 = "tcgen05-epilogue8"
"""Two warpgroups drain D, each half of its columns, with most of the registers."""
TCGEN05_EPILOGUE12 = "tcgen05-epilogue12"
"""Three warpgroups drain D: as many as have registers, 152 for each thread."""
TCGEN05_ATTENTION = "tcgen05-attention"
"""Attention: a warpgroup for each of two tiles of queries, whose threads have a row of scores, and
one that rescales and stores the sums of both."""
WARP_MAPS = {
    TCGEN05: WarpMap(
        (
            Role(PRODUCER, (4,), "one"),
            Role(MMA, (5,), "one"),
            Role(EPILOGUE, (0, 1, 2, 3), "warp"),
        ),
        allocates=MMA,
    ),
    TCGEN05_EPILOGUE_LOAD: WarpMap(
        (
            Role(PRODUCER, (4,), "one"),
            Role(MMA, (5,), "one"),
            Role(EPILOGUE_LOAD, (6,), "one"),
            Role(EPILOGUE, (0, 1, 2, 3), "warp"),
        ),
        allocates=MMA,
    ),
    WGMMA: WarpMap(
        (
            Role(PRODUCER, (8,), "one"),
            Role(CONSUMER, tuple(range(8)), "warp"),
        )
    ),
    WGMMA_PROMOTED: WarpMap(
        (
            Role(PRODUCER, (8,), "one", registers=24),
            Role(CONSUMER, tuple(range(8)), "warp", registers=240),
        )
    ),
    WGMMA_ATTENTION: WarpMap(
        (
            Role(PRODUCER, (12,), "one", registers=32),
            Role(CONSUMER, tuple(range(12)), "warp", registers=160),
        )
    ),
    WGMMA_ONE: WarpMap(
        (
            Role(PRODUCER, (4,), "one"),
            Role(CONSUMER, tuple(range(4)), "warp"),
        )
    ),
    WGMMA_COMPUTED: WarpMap(
        (
            Role(PRODUCER, (12,), "one"),
            Role(EPILOGUE, (8, 9, 10, 11), "warp"),
            Role(CONSUMER, tuple(range(8)), "warp"),
        )
    ),
    WGMMA_THREE: WarpMap(
        (
            Role(PRODUCER, (12,), "one"),
            Role(CONSUMER, tuple(range(12)), "warp"),
        )
    ),
    TCGEN05_EPILOGUE8: WarpMap(
        (
            Role(PRODUCER, (8,), "one", registers=80),
            Role(MMA, (9,), "one", registers=80),
            Role(EPILOGUE, tuple(range(8)), "warp", registers=208),
        ),
        allocates=MMA,
    ),
    TCGEN05_EPILOGUE12: WarpMap(
        (
            Role(PRODUCER, (12,), "one", registers=56),
            Role(MMA, (13,), "one", registers=56),
            Role(EPILOGUE, tuple(range(12)), "warp", registers=152),
        ),
        allocates=MMA,
    ),
    TCGEN05_ATTENTION: WarpMap(
        (
            Role(PRODUCER, (12,), "one", registers=96),
            Role(MMA, (13,), "one", registers=96),
            Role(SOFTMAX[0], (0, 1, 2, 3), "warp", registers=176),
            Role(SOFTMAX[1], (4, 5, 6, 7), "warp", registers=176),
            Role(EPILOGUE, (8, 9, 10, 11), "warp", registers=64),
        ),
        allocates=MMA,
    ),
}
"""Every map, by name."""


def role_of(op: ir.OpView) -> str:
    """The name of the role that executes an op. The attribute `FOR_ROLE` names it or, without the
    attribute, the traits of the op do; "" if neither names a role."""
    if FOR_ROLE in op.operation.attributes:
        return string(op, FOR_ROLE)
    return traits_of(op).role


def role_kinds() -> tuple[str, ...]:
    """Names of the roles of all warp maps."""
    return tuple(dict.fromkeys(kind for each in WARP_MAPS.values() for kind in each.kinds))


def warp_map_of(kernel: ir.OpView) -> WarpMap:
    """The warp map that a kernel names; `PassError` if the table has no such map."""
    name = string(kernel, WARP_MAP) if WARP_MAP in kernel.attributes else TCGEN05
    if name not in WARP_MAPS:
        raise PassError(
            f"expected {WARP_MAP} to be one of {', '.join(WARP_MAPS)}, got {name}", kernel.location
        )
    return WARP_MAPS[name]
