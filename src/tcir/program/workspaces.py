"""Workspaces: the memory between launches, planned as one allocation, which is called the arena.

On the `builtin.module`, the attribute ``tc.workspaces`` has the sizes of the workspaces in bytes,
and ``tc.workspace_offsets``, which the pass plan-workspaces writes, their offsets in the arena.
Without offsets, no two workspaces share a byte.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from tcir.errors import InputError

if TYPE_CHECKING:
    from tcir._mlir import ir

SIZES, OFFSETS = "tc.workspaces", "tc.workspace_offsets"
ALIGNMENT = 256
"""Alignment in bytes of any allocation (CUDA C++ Programming Guide, device memory accesses), and
so of a workspace: more than TMA and vector loads require."""


def aligned(size: int) -> int:
    """Rounds a size in bytes up to the alignment of workspaces."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def sizes_of(module: ir.Module) -> tuple[int, ...]:
    """Returns the size of each workspace in bytes."""
    attributes = module.operation.attributes
    return tuple(attributes[SIZES]) if SIZES in attributes else ()


@dataclass(frozen=True)
class Workspaces:
    """Sizes of workspaces in bytes, and their offsets in the arena.

    Raises InputError for offsets that are negative or not aligned, or if the numbers of offsets and
    sizes differ.
    """

    sizes: tuple[int, ...] = ()
    offsets: tuple[int, ...] = ()

    @staticmethod
    def of(module: ir.Module) -> Workspaces:
        """Returns the workspaces between the kernels of `module`."""
        attributes = module.operation.attributes
        if OFFSETS not in attributes:
            return Workspaces.apart(sizes_of(module))
        return Workspaces(sizes_of(module), tuple(attributes[OFFSETS]))

    @staticmethod
    def apart(sizes: Iterable[int]) -> Workspaces:
        """Places workspaces consecutively, so that no two share a byte."""
        sizes = tuple(sizes)
        ends = accumulate((aligned(max(0, size)) for size in sizes), initial=0)
        return Workspaces(sizes, tuple(ends)[: len(sizes)])

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.sizes):
            raise InputError(
                f"expected as many {OFFSETS} as {SIZES}, {len(self.sizes)}, got "
                f"{len(self.offsets)}: {list(self.offsets)}; run plan-workspaces again"
            )
        for number, offset in enumerate(self.offsets):
            if offset < 0 or offset % ALIGNMENT:
                raise InputError(
                    f"expected {OFFSETS} that are multiples of {ALIGNMENT} from 0 on (TMA and "
                    f"vector loads need aligned addresses), got {offset} for workspace {number} "
                    "of them; run plan-workspaces again"
                )

    @property
    def arena(self) -> int:
        """Bytes of the arena."""
        return max((o + size for o, size in zip(self.offsets, self.sizes)), default=0)

    def share(self, one: int, other: int) -> bool:
        """Whether two workspaces have a byte in common."""
        begins = max(self.offsets[one], self.offsets[other])
        ends = min(self.offsets[n] + self.sizes[n] for n in (one, other))
        return begins < ends

    def check(self, launches: Sequence[tuple[str, Collection[int]]], first: int) -> None:
        """Raises InputError if a launch overwrites bytes that the launch itself or a later launch
        reads.

        launches: for each launch, its name and the numbers of its buffers, in order. A launch
                  writes those of its buffers that no earlier launch wrote
        first:    number of the first workspace
        """
        holds: set[int] = set()
        lost: dict[int, str] = {}
        for name, buffers in launches:
            used = [n - first for n in buffers if first <= n < first + len(self.sizes)]
            for number in used:
                if number in lost:
                    raise InputError(
                        f"@{name}: expected workspace {first + number} as an earlier launch stored "
                        f"it, got bytes of {lost[number]}, which shares memory with it "
                        f"({OFFSETS}); run plan-workspaces again"
                    )
            for number in used:
                if number in holds:
                    continue
                for other in holds.intersection(used) | set(used) - {number}:
                    if self.share(number, other):
                        raise InputError(
                            f"@{name}: workspace {first + number}, which it writes, must not share "
                            f"memory with workspace {first + other}, which it also uses "
                            f"({OFFSETS}); run plan-workspaces again"
                        )
                for other in [each for each in holds if self.share(number, each)]:
                    holds.remove(other)
                    lost[other] = f"workspace {first + number} of @{name}"
                holds.add(number)


NONE = Workspaces()
"""No workspaces, as in a program of one launch."""
