"""Copy operations and copy atoms, and the table of all of them."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.layout.int_tuple import LayoutError
from tcir.layout.layout import Layout
from tcir.layout.tile import upcast

SHARED, GLOBAL, REGISTERS = "shared", "global", "registers"


@dataclass(frozen=True)
class CopyOperation:
    """One copy instruction.

    src, dst:    ``(thread, bit) -> bit`` of the moved data: the bits that each thread reads, and
                 those that it writes
    reference:   ``"src"`` or ``"dst"``: the side whose threads own the data in a tiled copy
    spaces:      state spaces of source and destination
    row_bytes:   number of contiguous bytes at each thread's address in memory, which is also their
                 alignment; 0 for element-by-element copies
    collective:  whether all threads of the warp execute the instruction together (``.aligned``)
    """

    name: str
    src: Layout
    dst: Layout
    reference: str
    spaces: tuple[str, str]
    row_bytes: int
    collective: bool

    @property
    def threads(self) -> int:
        """Number of threads that cooperate."""
        return self.src[0].size


@dataclass(frozen=True)
class CopyAtom:
    """A copy operation on elements of ``element_bits`` bits; its layouts count elements."""

    operation: CopyOperation
    element_bits: int
    src: Layout
    dst: Layout

    @property
    def name(self) -> str:
        """Name of the operation."""
        return self.operation.name

    @property
    def reference(self) -> Layout:
        """The layout of the side that owns the data: ``(thread, value) -> element``."""
        return self.src if self.operation.reference == "src" else self.dst


def _table() -> dict[str, CopyOperation]:
    from . import cp_async, ldmatrix, universal

    groups = (*universal.OPERATIONS, *cp_async.OPERATIONS, *ldmatrix.OPERATIONS)
    return {operation.name: operation for operation in groups}


COPY_OPERATIONS: dict[str, CopyOperation] = {}


def copy_atom(name: str, element_bits: int) -> CopyAtom:
    """Returns the operation ``name`` for elements of ``element_bits``.

    Raises `LayoutError` if the operation would split elements, e.g. ``ldmatrix.trans``
    for 32-bit elements: it transposes 16-bit units.
    """
    if name not in COPY_OPERATIONS:
        raise LayoutError(f"expected one of {', '.join(COPY_OPERATIONS)}, got {name}")
    operation = COPY_OPERATIONS[name]
    try:
        src, dst = upcast(operation.src, element_bits), upcast(operation.dst, element_bits)
    except LayoutError as error:
        raise LayoutError(f"{name} cannot move {element_bits}-bit elements: {error}") from error
    return CopyAtom(operation, element_bits, src, dst)


COPY_OPERATIONS.update(_table())
