"""The instructions of a program as compiled code reads them: a row of numbers each."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.isa.memory import Load
from tcir.interp.ptx.kernels.arithmetic import SPELLED
from tcir.interp.ptx.loops import execution as on
from tcir.interp.ptx.op import BRANCH, PLAIN, Compute, Op
from tcir.interp.ptx.registers import PREDICATE, VIEW_DTYPES, WarpStorage
from tcir.interp.ptx.syntax import Site

_KINDS = {"i32": 32, "i64": 64, "pred": 1}


def _table() -> dict[str, tuple[int, int, int]]:
    """Maps each kernel of `SPELLED` to its operation, the bits of a word, and the signed
    sources."""
    found: dict[str, tuple[int, int, int]] = {"narrow": (on.COPY, 32, 0)}
    names = {"add": on.ADD, "sub": on.SUB, "mul_lo": on.MUL, "and": on.AND, "or": on.OR,
             "xor": on.XOR, "mad": on.MAD, "not": on.NOT, "neg": on.NEG, "copy": on.COPY,
             "select": on.SELECT, "shl": on.SHL, "shr_u": on.SHR_U, "shr_s": on.SHR_S}  # fmt: skip
    for kind, bits in _KINDS.items():
        found |= {f"{name}_{kind}": (op, bits, name == "shr_s") for name, op in names.items()}
    for letter, signed in (("u", 0), ("s", 3)):
        for bits in (32, 64):
            for name, op in (("min", on.MIN), ("max", on.MAX), *on.TESTS.items()):
                test = f"setp_{name}" if name in on.TESTS else name
                found[f"{test}_{letter}{bits}"] = op, bits, signed
        found[f"mul_wide_{letter}32"] = on.MUL, 64, signed
        found[f"mad_wide_{letter}32"] = on.MAD, 64, signed
        found[f"mul_hi_{letter}32"] = on.HIGH, 32, signed
        found[f"widen_{letter}32"] = on.COPY, 64, signed
    return found


_TABLE = _table()

PARTS = 8
"""Number of variants of a program, for different slots, that are cached."""


@dataclass(frozen=True)
class LoopCode:
    """code: int64 [instructions, `WIDTH`]; of one that is not executed here the operation is 0.

    heads: the first instructions of loops all of which are. predicates: their slots, in the order
    in which `code` numbers them. sites: of the instructions; places: the first instruction at each.
    """

    code: NDArray[np.int64]
    heads: frozenset[int]
    predicates: tuple[int, ...]
    sites: tuple[Site, ...]
    places: dict[Site, int]
    _parts: dict[frozenset[int], NDArray[np.int64]] = field(default_factory=dict)

    def without(self, slots: Set[int]) -> NDArray[np.int64]:
        """`code` without the instructions that read or write these."""
        key = frozenset(slots)
        found = self._parts.get(key)
        if found is None:
            if len(self._parts) >= PARTS:
                self._parts.clear()
            found = self._parts[key] = self.code.copy()
            avoided = np.array(sorted(slots))
            touches = (found[:, on.GUARD] >= 0) & np.isin(found[:, on.GUARD_SLOT], avoided)
            for at in range(on.OPERANDS, on.WIDTH, 3):
                touches |= (found[:, at] > 0) & np.isin(found[:, at + 2], avoided)
            found[touches, on.OP] = 0
        return found


def loop_code(ops: list[Op], storage: WarpStorage) -> LoopCode | None:
    """None: there is no such loop."""
    loops = [range(op.target, end + 1) for end, op in enumerate(ops)
             if op.kind == BRANCH and 0 <= op.target <= end]  # fmt: skip
    encoder = _Encoder(storage)
    known = [encoder.encodable(op) for op in ops]
    heads = frozenset(loop[0] for loop in loops if all(known[at] for at in loop))
    if not heads:
        return None
    none = [0] * on.WIDTH
    rows = [encoder.row(op) if good else none for op, good in zip(ops, known, strict=True)]
    code = np.array(rows, np.int64)
    sites = tuple(op.site for op in ops)
    places: dict[Site, int] = {}
    code[:, on.SITE] = [places.setdefault(site, at) for at, site in enumerate(sites)]
    return LoopCode(code, heads, tuple(encoder.predicates), sites, places)


class _Encoder:
    def __init__(self, storage: WarpStorage) -> None:
        self.sizes = storage.slots.sizes
        self.rows = {slot: row for bank in storage.banks for slot, row in bank.rows.items()}
        self.predicates: dict[int, int] = {}

    def encodable(self, op: Op) -> bool:
        """Whether compiled code knows the instruction, but for what its operands hold."""
        if op.kind == BRANCH:
            return op.target >= 0
        if op.kind != PLAIN or op.aligned:
            return False
        if isinstance(op.form, Load):
            return self._plain(op.form)
        spelled = SPELLED.get(op.spelling)
        if spelled is None or op.compute is None or spelled.kernel not in _TABLE:
            return False
        sizes = tuple(map(_size, op.compute.sources))
        return spelled.sources == sizes and [spelled.out] == [*map(_size, op.compute.results)]

    def _plain(self, load: Load) -> bool:
        """One word of global memory, to a register of its size."""
        if len(load.moves) != 1 or load.place.size not in (4, 8):
            return False
        _, slot, view = load.moves[0]
        width = {load.nbytes, load.dtype.itemsize, VIEW_DTYPES[view].itemsize, self.sizes[slot]}
        return (
            load.plain and not load.constant and load.place.space == "global"
            and width in ({4}, {8})
        )  # fmt: skip

    def row(self, op: Op) -> list[int]:
        """Encodes an `encodable` instruction."""
        row = [0] * on.WIDTH
        row[on.GUARD] = -1
        if op.guard >= 0:
            row[on.GUARD], row[on.NEGATE] = self._predicate(op.guard), op.negate
            row[on.GUARD_SLOT] = op.guard
        if op.kind == BRANCH:
            row[on.OP], row[on.TARGET] = on.BRANCH, op.target
        elif isinstance(op.form, Load):
            load = op.form
            row[on.OP], row[on.NBYTES] = on.LOAD, load.nbytes
            row[on.OFFSET] = load.place.offset
            self._operand(row, 0, load.moves[0][1])
            self._operand(row, 1, load.place.slot)
        elif op.compute is not None:
            self._computing(op.compute, SPELLED[op.spelling].kernel, row)
        return row

    def _computing(self, compute: Compute, kernel: str, row: list[int]) -> None:
        row[on.OP], row[on.BITS], row[on.SIGNED] = _TABLE[kernel]
        row[on.FLIPS] = sum(1 << n for n in compute.flips)
        row[on.PRODUCTS] = compute.products
        self._operand(row, 0, compute.results[0][0])
        for n, (slot, _) in enumerate(compute.sources):
            self._operand(row, 1 + n, slot)

    def _operand(self, row: list[int], n: int, slot: int) -> None:
        """n: 0 for the result, then the sources."""
        size = self.sizes[slot]
        at = on.OPERANDS + 3 * n
        row[at : at + 3] = size or 1, self.rows[slot] if size else self._predicate(slot), slot

    def _predicate(self, slot: int) -> int:
        return self.predicates.setdefault(slot, len(self.predicates))


def _size(operand: tuple[int, int]) -> int:
    _, view = operand
    return 1 if view == PREDICATE else VIEW_DTYPES[view].itemsize
