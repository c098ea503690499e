"""Bank conflicts of shared memory, phase by phase.

Shared memory has 32 banks of 4 bytes (CUDA C++ Programming Guide, compute capability 5.x and
later). A warp's access is served in phases: one phase of all 32 threads for up to 4 bytes per
thread, two phases of 16 threads for 8 bytes, four phases of 8 threads for 16 bytes. ldmatrix and
stmatrix take one phase per matrix, which accesses 8 rows of 16 bytes. A word that several threads
of a phase access is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .int_tuple import LayoutError
from .swizzle import SWIZZLES
from .tensor import Tensor
from .tiled_copy import TiledCopy

BANKS = 32
BANK_BYTES = 4
WARP = 32
WIDTHS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class AccessPhase:
    """One phase of an access. ``words[bank]``: the distinct words of that bank that the phase's
    threads access.
    """

    threads: tuple[int, ...]
    words: tuple[tuple[int, ...], ...]

    @property
    def wavefronts(self) -> int:
        """Number of passes over the banks: the largest number of distinct words in one bank."""
        return max(len(words) for words in self.words)

    @property
    def conflicts(self) -> int:
        """Number of passes after the first."""
        return max(self.wavefronts - 1, 0)


def phases(addresses: Sequence[int], width: int) -> list[AccessPhase]:
    """Returns the phases of one access, in which thread i reads or writes ``width`` bytes at
    ``addresses[i]``."""
    if width not in WIDTHS:
        raise LayoutError(f"expected an access of {WIDTHS} bytes a thread, got {width}")
    at_once = min(WARP, WARP * BANK_BYTES // width)
    found = []
    for begin in range(0, len(addresses), at_once):
        group = range(begin, min(begin + at_once, len(addresses)))
        banks: list[set[int]] = [set() for _ in range(BANKS)]
        for thread in group:
            first = addresses[thread]
            if first % width:
                raise LayoutError(
                    f"expected addresses that are multiples of {width}, got {first} of thread "
                    f"{thread}"
                )
            for word in range(first // BANK_BYTES, (first + width - 1) // BANK_BYTES + 1):
                banks[word % BANKS].add(word)
        found.append(AccessPhase(tuple(group), tuple(tuple(sorted(words)) for words in banks)))
    return found


def conflicts(addresses: Sequence[int], width: int) -> int:
    """Number of passes after the first of each phase, summed over the phases."""
    return sum(phase.conflicts for phase in phases(addresses, width))


def copy_phases(copy: TiledCopy, tensor: Tensor, side: str) -> list[AccessPhase]:
    """Returns all phases of all instructions by which ``copy`` reads (``"S"``) or writes (``"D"``)
    shared memory.

    ``tensor`` is the tensor in shared memory. One instruction moves ``row_bytes`` bytes of each
    thread's partition; warps execute one after another.
    """
    operation = copy.atom.operation
    width = operation.row_bytes
    run = width * 8 // tensor.element_bits
    found: list[AccessPhase] = []
    for warp in range(0, copy.size, WARP):
        threads = range(warp, min(warp + WARP, copy.size))
        slices = [copy.get_slice(thread) for thread in threads]
        parts = [s.partition_S(tensor) if side == "S" else s.partition_D(tensor) for s in slices]
        for first in range(0, parts[0].size, run):
            addresses = [part.address(first) for part in parts]
            if operation.collective:  # threads past the last matrix name no row
                side_layout = copy.atom.src if side == "S" else copy.atom.dst
                addresses = addresses[: side_layout.cosize // run]
            found += phases(addresses, width)
    return found


def copy_conflicts(copy: TiledCopy, tensor: Tensor, side: str) -> int:
    """Number of passes after the first of each phase, summed over all phases of `copy_phases`."""
    return sum(phase.conflicts for phase in copy_phases(copy, tensor, side))


def conflict_free_swizzle(tensor: Tensor, uses: Sequence[tuple[TiledCopy, str]]) -> str:
    """Returns the first swizzle mode under which none of ``uses``, pairs (copy, side), has a bank
    conflict.

    Raises `LayoutError` if there is none; the error names the modes with the fewest conflicts.
    """
    counts = {}
    for mode in ("NONE", "32B", "64B", "128B"):
        swizzled = Tensor(
            tensor.layout, tensor.offset, tensor.element_bits, SWIZZLES[mode], tensor.start
        )
        counts[mode] = sum(copy_conflicts(copy, swizzled, side) for copy, side in uses)
        if counts[mode] == 0:
            return mode
    raise LayoutError(
        f"no swizzle frees {tensor.layout} of conflicts: "
        + ", ".join(f"{mode} leaves {n}" for mode, n in counts.items())
    )
