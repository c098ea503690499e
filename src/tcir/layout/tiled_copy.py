"""Tiled copies: a copy atom repeated over threads and values, and the elements each thread moves.

The construction is CuTe's (NVIDIA/cutlass, include/cute/atom/copy_atom.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from .atoms.copy import REGISTERS, CopyAtom
from .int_tuple import LayoutError
from .layout import (
    Layout,
    collision,
    composition,
    concatenate,
    is_injective,
    logical_divide,
    logical_product,
    right_inverse,
    with_shape,
)
from .tensor import Tensor, identity_tensor
from .tile import product_each, raked_product, zipped_divide
from .tiled_mma import TiledMma


@dataclass(frozen=True)
class TiledCopy:
    """A copy atom repeated over threads and values.

    layout_tv: ``(thread, value) -> index`` in the column-major tile, for the reference side of the
        atom
    """

    atom: CopyAtom
    layout_tv: Layout
    tile: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of threads."""
        return self.layout_tv[0].size

    def tv(self, side: str) -> Layout:
        """Returns ``(thread, value) -> index`` in the column-major tile, for side ``"S"`` or
        ``"D"``."""
        return _thread_value(self, side)

    def get_slice(self, thread: int) -> ThrCopy:
        """Returns the part of the copy that `thread` executes."""
        if not 0 <= thread < self.size:
            raise LayoutError(f"expected a thread from 0 to {self.size - 1}, got {thread}")
        return ThrCopy(self, thread)

    get_thread_slice = get_slice


@lru_cache(maxsize=256)
def _thread_value(copy: TiledCopy, side: str) -> Layout:
    """``((atom thread, rest), (atom value, rest)) -> index`` in the tile, of one side."""
    reference = copy.atom.reference
    atoms = zipped_divide(copy.layout_tv, product_each(reference), f"{copy.atom.name} threads")
    to_reference = composition(
        right_inverse(reference), copy.atom.src if side == "S" else copy.atom.dst
    )
    parts = composition(atoms[0], to_reference)
    return concatenate(
        concatenate(parts[0], atoms[1][0]),
        concatenate(parts[1], atoms[1][1]),
    )


@lru_cache(maxsize=256)
def _partitions(copy: TiledCopy, side: str, layout: Layout) -> tuple[Layout, Layout]:
    """Returns where each thread's part of a tensor starts, and the part: ``(CPY, CPY_M, CPY_K,
    …)``."""
    zipped = zipped_divide(layout, copy.tile, f"a tensor of {copy.atom.name}")
    parts = composition(zipped[0], copy.tv(side))
    return parts[0], concatenate(parts[1], *zipped[1])


@dataclass(frozen=True)
class ThrCopy:
    """The part of a tiled copy that one thread executes."""

    copy: TiledCopy
    thread: int

    def _partition(self, side: str, tensor: Tensor) -> Tensor:
        threads, values = _partitions(self.copy, side, tensor.layout)
        return tensor.with_layout(values, threads(self.thread))

    def partition_S(self, tensor: Tensor) -> Tensor:
        """Returns the elements that this thread reads: ``(CPY, CPY_M, CPY_K, …)``.

        For `ldmatrix`, the result is the row whose address the thread supplies. Raises
        `LayoutError` if the instruction needs contiguous bytes and they are not contiguous.
        """
        part = self._partition("S", tensor)
        self._check_rows("S", tensor, part)
        return part

    def partition_D(self, tensor: Tensor) -> Tensor:
        """Returns the elements that this thread writes, in the form of `partition_S`."""
        tensor.check_injective(f"destination of {self.copy.atom.name}")
        part = self._partition("D", tensor)
        self._check_rows("D", tensor, part)
        return part

    def _check_rows(self, side: str, tensor: Tensor, part: Tensor) -> None:
        operation = self.copy.atom.operation
        if operation.spaces[side == "D"] == REGISTERS:
            return
        run = operation.row_bytes * 8 // tensor.element_bits
        if tensor.element_bits != self.copy.atom.element_bits:
            raise LayoutError(
                f"{operation.name} of {self.copy.atom.element_bits}-bit elements: got a tensor of "
                f"{tensor.element_bits}-bit elements"
            )
        step = tensor.element_bits / 8
        addresses = part.addresses()
        for i, address in enumerate(addresses):
            first = addresses[i - i % run]
            where = i % run
            if where == 0 and first % operation.row_bytes:
                problem = f"begins at address {first}, which is not a multiple of"
            elif address != first + int(where * step):
                problem = (
                    f"lies at address {address}, not {int(where * step)} bytes after its "
                    f"row's start {first}: not in one piece of"
                )
            else:
                continue
            raise LayoutError(
                f"{operation.name}: thread {self.thread} needs rows of {operation.row_bytes} bytes "
                f"in one piece, but coordinate {self._coordinate(side, tensor, i)} {problem} "
                f"{operation.row_bytes} bytes; use a {self._remedy()}"
            )

    def _remedy(self) -> str:
        if self.copy.atom.operation.collective:
            return "layout contiguous along the matrix rows, .trans, or plain copies (copy.b16 …)"
        return "narrower copy, or a layout contiguous along the values"

    def _coordinate(self, side: str, tensor: Tensor, i: int) -> object:
        natural = Layout(tuple(mode.size for mode in tensor.layout))
        names = self._partition(side, identity_tensor(natural.shape))
        return natural.coordinate(names(i))

    def retile_S(self, fragment: Tensor) -> Tensor:
        """Reorders a fragment of registers from the order of an mma to that of this copy's source:
        ``(CPY, CPY_M, CPY_K, …)``.
        """
        return self._retile(fragment)

    def retile_D(self, fragment: Tensor) -> Tensor:
        """Reorders a fragment as `retile_S` does, for this copy's destination."""
        return self._retile(fragment)

    def _retile(self, fragment: Tensor) -> Tensor:
        values = fragment.layout[0].size
        threads = self.copy.size
        by_tile = with_shape(right_inverse(self.copy.layout_tv), self.copy.tile)
        blocks = _blocks(by_tile, threads * values)
        per_atom = self.copy.atom.reference[1].size
        order = logical_divide(
            logical_product(Layout(values), right_inverse(blocks)), Layout(per_atom)
        )
        cut = zipped_divide(
            fragment.layout,
            (values, *product_each(blocks)),
            f"a fragment for {self.copy.atom.name}",
        )
        mine = composition(cut[0], order)
        rest = [cut[1][i] for i in range(1, len(cut[1]))]
        return fragment.with_layout(concatenate(mine, *rest), 0)


def _blocks(layout: Layout, factor: int) -> Layout:
    """Returns ``layout`` counted in whole blocks of ``factor``; modes inside a block have extent
    1."""
    if isinstance(layout.shape, tuple):
        return concatenate(*(_blocks(mode, factor) for mode in layout))
    assert isinstance(layout.stride, int)
    if layout.stride and layout.stride % factor == 0:
        return Layout(layout.shape, layout.stride // factor)
    return Layout(max(layout.shape * layout.stride // factor, 1), 1)


def _make(atom: CopyAtom, layout_tv: Layout, tile: tuple[int, ...]) -> TiledCopy:
    threads, values = product_each(atom.reference)
    if layout_tv[0].size % threads or layout_tv[1].size % values:
        raise LayoutError(
            f"{atom.name} moves {values} values of {threads} threads at once: expected multiples, "
            f"got {layout_tv[1].size} values of {layout_tv[0].size} threads (thread "
            f"{layout_tv[0].size // threads * threads}, value "
            f"{layout_tv[1].size // values * values} begin an atom that does not fit)"
        )
    return TiledCopy(atom, layout_tv, tile)


def make_tiled_copy(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """Returns a copy whose threads are arranged as ``thr_layout``; each thread has a block
    ``val_layout`` of the tile.

    The two layouts map coordinates of the tile to thread numbers and to value numbers. Raises
    `LayoutError` if two coordinates share a number or a number is missing.
    """
    for name, layout in (("threads", thr_layout), ("values", val_layout)):
        if not is_injective(layout):
            raise LayoutError(f"{name} {layout}: not injective, {collision(layout)}")
        if layout.cosize != layout.size:
            missing = min(set(range(layout.cosize)) - set(layout.indices()))
            last = layout.coordinate(layout.indices().index(layout.cosize - 1))
            raise LayoutError(
                f"{name} {layout}: expected numbers 0 to {layout.size - 1}, but {missing} is left "
                f"out and coordinate {last} is {layout.cosize - 1}"
            )
    thr_layout, val_layout = (
        layout if isinstance(layout.shape, tuple) else concatenate(layout)
        for layout in (thr_layout, val_layout)
    )
    rank = max(len(thr_layout), len(val_layout))
    thr_layout, val_layout = (
        concatenate(*layout, *(Layout(1, 0) for _ in range(rank - len(layout))))
        for layout in (thr_layout, val_layout)
    )
    tile = raked_product(thr_layout, val_layout)
    layout_tv = with_shape(right_inverse(tile), (thr_layout.size, val_layout.size))
    return _make(atom, layout_tv, product_each(tile))


def _make_for(operand: str, atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    return _make(atom, mma.layout_tv(operand), mma.tile_of(operand))


def make_tiled_copy_A(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """Returns the copy that gives each thread the elements of A that `mma` reads from it."""
    return _make_for("A", atom, mma)


def make_tiled_copy_B(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """Returns the copy that gives each thread the elements of B that `mma` reads from it."""
    return _make_for("B", atom, mma)


def make_tiled_copy_C(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """Returns the copy in which each thread moves the elements of C that it has in `mma`."""
    return _make_for("C", atom, mma)


def make_tiled_copy_S(atom: CopyAtom, other: TiledCopy) -> TiledCopy:
    """Returns a copy that distributes the data over threads as `other` does at its source."""
    return _make(atom, other.tv("S"), other.tile)


def make_tiled_copy_D(atom: CopyAtom, other: TiledCopy) -> TiledCopy:
    """Returns a copy that distributes the data over threads as `other` does at its destination."""
    return _make(atom, other.tv("D"), other.tile)
