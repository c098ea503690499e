"""The register file of a warp: slots, their storage, and views of a register as different types.

Operands of instructions are *slots* of the register file. Registers, constants and special
registers all have slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tcir.interp.ptx.syntax import Type
from tcir.machine.memory.undefined import Tracked

#: Views of a register by type: index into `Warp.v`.
VIEWS: dict[str, int] = {
    name: n
    for n, name in enumerate(
        ("u8", "s8", "u16", "s16", "f16", "u32", "s32", "f32", "u64", "s64", "f64", "b128")
    )
}
U8, U16, U32, S32, U64, S64, B128 = (
    VIEWS[name] for name in ("u8", "u16", "u32", "s32", "u64", "s64", "b128")
)
VIEW_DTYPES: list[np.dtype] = [
    np.dtype(d) for d in ("u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "V16")
]
_VIEW_OF = {
    **VIEWS,
    **{f"b{8 * n}": VIEWS[f"u{8 * n}"] for n in (1, 2, 4, 8)},
    "bf16": U16,
    "bf16x2": U32,
    "f16x2": U32,
    "tf32": U32,
    "f32x2": U64,
    "u128": B128,
    **dict.fromkeys(("u16x2", "s16x2"), U32),
}
PREDICATE = -1
"""In place of a view: a predicate, a bool per lane."""
_BOOL = np.dtype(bool)
_UNSIGNED = {1: U8, 2: U16, 4: U32, 8: U64, 16: B128}

_POISON_BYTE = 0xCB
"""Initial contents of registers and local memory."""


def view(kind: Type | str) -> int:
    """Index into `Warp.v` of the arrays that show registers as this type."""
    return _VIEW_OF[kind if isinstance(kind, str) else kind.name]


def unsigned_view(size: int) -> int:
    """The view that shows a register of `size` bytes as unsigned integers."""
    return _UNSIGNED[size]


def dtype_of(view: int) -> np.dtype:
    """The numpy type of a lane's value in a view; bool for the view `PREDICATE`."""
    return _BOOL if view == PREDICATE else VIEW_DTYPES[view]


@dataclass
class Slots:
    """The slots of one function: the size of each in bytes (0 for a predicate), and initial
    contents.
    """

    sizes: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    constants: dict[int, int] = field(default_factory=dict)  # slot → bits
    specials: dict[int, str] = field(default_factory=dict)  # slot → name
    shared: set[int] = field(default_factory=set)  # constants that grow by the CTA's window
    private: set[int] = field(default_factory=set)  # constants that grow by the thread's window
    local: dict[str, int] = field(default_factory=dict)  # addresses of local variables
    stack: int = 0  # where the memory of alloca begins, in local memory
    _interned: dict[tuple[object, ...], int] = field(default_factory=dict)

    def stack_pointer(self) -> int:
        """Slot of the stack pointer for alloca, the start of its free memory. No register name of
        the program refers to it.
        """
        key = ("stack",)
        if key not in self._interned:
            self._interned[key] = slot = self.new(8, "stack pointer")
            self.constants[slot] = self.stack
        return self._interned[key]

    @property
    def has_stack(self) -> bool:
        """Whether the function has an instruction that needs the stack of alloca."""
        return ("stack",) in self._interned

    def new(self, size: int, name: str) -> int:
        self.sizes.append(size)
        self.names.append(name)
        return len(self.sizes) - 1

    def constant(self, size: int, bits: int) -> int:
        key = ("constant", size, bits)
        if key not in self._interned:
            self._interned[key] = slot = self.new(size, f"{bits:#x}")
            self.constants[slot] = bits
        return self._interned[key]

    def symbol(self, size: int, space: str, address: int) -> int:
        """Slot of a variable's address. The address of a variable in shared memory depends on the
        CTA's rank in the cluster, that of a variable in local memory on the thread.
        """
        windows = {"shared": self.shared, "local": self.private}
        if space not in windows:
            return self.constant(size, address & ((1 << (8 * size)) - 1))
        key = (space, size, address)
        if key not in self._interned:
            self._interned[key] = slot = self.new(size, f"{space} {address:#x}")
            self.constants[slot] = address
            windows[space].add(slot)
        return self._interned[key]

    def special(self, name: str, size: int) -> int:
        key = ("special", name, size)
        if key not in self._interned:
            self._interned[key] = slot = self.new(size, name)
            self.specials[slot] = name
        return self._interned[key]

    def carry(self) -> int:
        """Slot of the condition code CC.CF, a predicate to which no register name of the program
        refers.
        """
        key = ("carry",)
        if key not in self._interned:
            self._interned[key] = self.new(0, "CC.CF")
        return self._interned[key]

    def sink(self, size: int) -> int:
        key = ("sink", size)
        if key not in self._interned:
            self._interned[key] = self.new(size, "_")
        return self._interned[key]


@dataclass(frozen=True)
class Bank:
    """All slots of one size: the row of each slot, and the initial contents of the rows, [rows,
    32].
    """

    size: int
    rows: dict[int, int]
    contents: np.ndarray


@dataclass(frozen=True)
class WarpStorage:
    """Storage that each warp of a launch gets: registers, and bytes of local memory per thread."""

    slots: Slots
    banks: list[Bank]
    local_bytes: int

    @staticmethod
    def of(slots: Slots, local_bytes: int) -> WarpStorage:
        """Creates the initial registers of a warp: constants have their values, all others the
        poison pattern.
        """
        banks = []
        for size in _UNSIGNED:
            members = [n for n, s in enumerate(slots.sizes) if s == size]
            if members:
                contents = np.full((len(members), 32 * size), _POISON_BYTE, np.uint8)
                contents = contents.view(VIEW_DTYPES[unsigned_view(size)])
                for row, slot in enumerate(members):
                    if slot in slots.constants:
                        contents[row] = slots.constants[slot]
                banks.append(Bank(size, {slot: row for row, slot in enumerate(members)}, contents))
        return WarpStorage(slots, banks, local_bytes)

    def registers(self) -> list[dict[int, np.ndarray]]:
        """Returns a new register file v: v[view][slot] is the array of the 32 values of a slot, in
        the type of the view.
        """
        fresh = {bank.size: (bank.contents.copy(), bank.rows) for bank in self.banks}
        blocks = [fresh.get(dtype.itemsize, _NO_SLOTS) for dtype in VIEW_DTYPES]
        return [Rows(b.view(t), rows) for t, (b, rows) in zip(VIEW_DTYPES, blocks, strict=True)]


class LocalMemory(Tracked):
    """Local memory of the 32 threads of a warp: uint8 [32, nbytes]."""

    def __init__(self, nbytes: int) -> None:
        self.data = np.full((32, nbytes), _POISON_BYTE, np.uint8)
        self.defined: np.ndarray = np.zeros((32, nbytes), bool)
        self.size = nbytes


class Rows(dict[int, np.ndarray]):
    """The slots of one size, viewed as values of one type. A slot's row is created on first use."""

    def __init__(self, block: np.ndarray, rows: dict[int, int]) -> None:
        self.block, self.rows = block, rows

    def __missing__(self, slot: int) -> np.ndarray:
        self[slot] = row = self.block[self.rows[slot]]
        return row


_NO_SLOTS: tuple[np.ndarray, dict[int, int]] = np.empty((0, 0), np.uint8), {}
