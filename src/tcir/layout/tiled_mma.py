"""Tiled mmas: one atom repeated over threads and over a tile, and the thread that holds each
element.

The construction is CuTe's (NVIDIA/cutlass, include/cute/atom/mma_atom.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tcir.threads import cached_property

from .atoms.mma import MmaAtom, mma_atom
from .int_tuple import IntTuple, LayoutError
from .layout import (
    Layout,
    collision,
    composition,
    concatenate,
    is_injective,
    logical_product,
    right_inverse,
)
from .tensor import Tensor
from .tile import Tile, as_layout, check_divisible, divide_modes, zipped_divide

MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}
"""Modes of each operand: indices into (M, N, K)."""


@dataclass(frozen=True)
class TiledMma:
    """``atom`` repeated over threads by ``atom_layout``, and over values by ``permutation``.

    ``permutation`` gives M, N and K of the tile, each as an extent or as a layout that also
    reorders; `None` stands for the extent that the threads cover once.
    """

    atom: MmaAtom
    atom_layout: Layout
    permutation: tuple[Tile, Tile, Tile]

    @cached_property
    def threads(self) -> Layout:
        """``(v, m, n, k) -> thread``: v is the thread within the atom; m, n and k select the copy
        of the atom.
        """
        product = logical_product(self.atom.threads, self.atom_layout)
        return concatenate(product[0], *product[1])

    @property
    def size(self) -> int:
        """Number of threads."""
        return self.threads.size

    @cached_property
    def tile_shape(self) -> tuple[int, int, int]:
        """M, N, K of the tile that all threads cover."""
        once = (extent * mode.size for extent, mode in zip(self.atom.shape, self.atom_layout))
        m, n, k = (
            natural if tile is None else as_layout(tile).size
            for natural, tile in zip(once, self.permutation)
        )
        return m, n, k

    @cached_property
    def _coordinates(self) -> dict[int, tuple[int, int, int, int]]:
        natural = Layout(tuple(mode.size for mode in self.threads))
        found: dict[int, tuple[int, int, int, int]] = {}
        for i in range(self.size):
            v, m, n, k = natural.coordinate(i)  # type: ignore[misc]
            found[self.threads(i)] = (v, m, n, k)  # type: ignore[assignment]
        return found

    def thrfrg_A(self, layout: Layout) -> Layout:
        """An (M, K, …) layout as ``((ThrV, (ThrM, ThrK)), (FrgV, (RestM, RestK, …)))``."""
        return _thrfrg(self, "A", layout)

    def thrfrg_B(self, layout: Layout) -> Layout:
        """An (N, K, …) layout as ``((ThrV, (ThrN, ThrK)), (FrgV, (RestN, RestK, …)))``."""
        return _thrfrg(self, "B", layout)

    def thrfrg_C(self, layout: Layout) -> Layout:
        """An (M, N, …) layout as ``((ThrV, (ThrM, ThrN)), (FrgV, (RestM, RestN, …)))``."""
        return _thrfrg(self, "C", layout)

    def tile_of(self, operand: str) -> tuple[int, int]:
        """Extents of the tile of an operand."""
        x, y = MODES[operand]
        return self.tile_shape[x], self.tile_shape[y]

    def layout_tv(self, operand: str) -> Layout:
        """``(thread, value) -> index`` in the column-major tile of an operand.

        Threads that hold the same data (for A, the threads along N) map to the same indices.
        """
        x, y = MODES[operand]
        parts = _thrfrg(self, operand, Layout(self.tile_of(operand)))
        by_mode = {x: parts[0][1][0], y: parts[0][1][1]}
        coordinates = concatenate(
            parts[0][0],
            *(by_mode.get(i, Layout(self.atom_layout[i].size, 0)) for i in range(3)),
        )
        from_thread = right_inverse(self.threads)
        if from_thread.size != self.size:
            raise LayoutError(
                f"expected threads 0 to {self.size - 1}, got {sorted(self._coordinates)}: place "
                f"atoms of {self.atom.name} so that they fill whole warps, e.g. Layout((2, 2, 1))"
            )
        return concatenate(composition(coordinates, from_thread), parts[1])

    def get_slice(self, thread: int) -> ThrMma:
        """Returns the part of the mma that `thread` executes."""
        if thread not in self._coordinates:
            raise LayoutError(
                f"expected one of the {self.size} threads {min(self._coordinates)} to "
                f"{max(self._coordinates)} of the mma, got {thread}"
            )
        return ThrMma(self, thread)

    get_thread_slice = get_slice


@lru_cache(maxsize=256)
def _thrfrg(mma: TiledMma, operand: str, layout: Layout) -> Layout:
    """``((ThrV, (ThrX, ThrY)), (FrgV, (RestX, RestY, …)))`` of an operand's tensor."""
    x, y = MODES[operand]
    atom = mma.atom.operand(operand)[0]
    what = f"{operand} of {mma.atom.name}"
    check_divisible(layout, mma.tile_of(operand), what)
    cut = divide_modes(layout, (mma.permutation[x], mma.permutation[y]), what)
    zipped = zipped_divide(cut, (mma.atom.shape[x], mma.atom.shape[y]), what)
    values = composition(zipped[0], atom)
    rest = zipped[1]
    split = divide_modes(rest, (mma.atom_layout[x].size, mma.atom_layout[y].size), what)
    further = [split[i] for i in range(2, len(split))]
    return concatenate(
        concatenate(values[0], concatenate(split[0][0], split[1][0])),
        concatenate(values[1], concatenate(split[0][1], split[1][1], *further)),
    )


@dataclass(frozen=True)
class ThrMma:
    """The part of a tiled mma that one thread executes."""

    mma: TiledMma
    thread: int

    def _partition(self, operand: str, tensor: Tensor) -> Tensor:
        parts = _thrfrg(self.mma, operand, tensor.layout)
        v, *mnk = self.mma._coordinates[self.thread]
        x, y = MODES[operand]
        where: IntTuple = (v, (mnk[x], mnk[y]))
        return tensor.with_layout(concatenate(parts[1][0], *parts[1][1]), parts[0](where))

    def partition_A(self, tensor: Tensor) -> Tensor:
        """This thread's part of an (M, K, …) tensor: ``(MMA, MMA_M, MMA_K, …)``."""
        return self._partition("A", tensor)

    def partition_B(self, tensor: Tensor) -> Tensor:
        """This thread's part of an (N, K, …) tensor: ``(MMA, MMA_N, MMA_K, …)``."""
        return self._partition("B", tensor)

    def partition_C(self, tensor: Tensor) -> Tensor:
        """This thread's part of an (M, N, …) tensor: ``(MMA, MMA_M, MMA_N, …)``."""
        return self._partition("C", tensor)

    def _fragment(self, operand: str, partition: Tensor) -> Tensor:
        bits = self.mma.atom.operand(operand)[2]
        return Tensor(Layout(partition.layout.shape), 0, bits)

    def make_fragment_A(self, partition: Tensor) -> Tensor:
        """Registers for a partition of A; value i of the fragment is the i-th value in order of
        use.
        """
        return self._fragment("A", partition)

    def make_fragment_B(self, partition: Tensor) -> Tensor:
        """Registers for a partition of B."""
        return self._fragment("B", partition)

    def make_fragment_C(self, partition: Tensor) -> Tensor:
        """Registers for a partition of C."""
        return self._fragment("C", partition)

    def partition_fragment_A(self, tensor: Tensor) -> Tensor:
        """``make_fragment_A(partition_A(tensor))``."""
        return self.make_fragment_A(self.partition_A(tensor))

    def partition_fragment_B(self, tensor: Tensor) -> Tensor:
        """``make_fragment_B(partition_B(tensor))``."""
        return self.make_fragment_B(self.partition_B(tensor))

    def partition_fragment_C(self, tensor: Tensor) -> Tensor:
        """``make_fragment_C(partition_C(tensor))``."""
        return self.make_fragment_C(self.partition_C(tensor))


def make_tiled_mma(
    atom: MmaAtom | str,
    atom_layout: Layout | tuple[int, ...] = (1, 1, 1),
    permutation: tuple[Tile, ...] = (None, None, None),
) -> TiledMma:
    """Repeats `atom` (or the atom of that name) over threads by `atom_layout` and over a tile by
    `permutation`."""
    atom = mma_atom(atom) if isinstance(atom, str) else atom
    placed = Layout(atom_layout) if isinstance(atom_layout, tuple) else atom_layout
    if len(placed) != 3 or len(permutation) != 3:
        raise LayoutError(f"expected modes M, N, K, got {placed} and {permutation}")
    if not is_injective(placed):
        raise LayoutError(f"atoms {placed} share threads: {collision(placed)}")
    for name, tile, extent, mode in zip("MNK", permutation, atom.shape, placed):
        if tile is None:
            continue
        layout, once = as_layout(tile), extent * mode.size
        if not is_injective(layout) or layout.cosize != layout.size:
            why = collision(layout) or f"the last index is {layout.cosize - 1}"
            raise LayoutError(
                f"{name}: expected a reordering of {layout.size}, got {layout}: {why}"
            )
        if layout.size % once:
            raise LayoutError(
                f"{name}: expected a tile of a multiple of {once} ({mode.size} atoms of {extent}), "
                f"got {layout.size}: coordinate {layout.size // once * once} begins an atom that "
                "does not fit"
            )
    return TiledMma(atom, placed, tuple(permutation))  # type: ignore[arg-type]
