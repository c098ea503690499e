"""Encodes one instruction as rows of numbers, which compiled code reads."""

from __future__ import annotations

from tcir.interp.ptx.isa.memory import Load
from tcir.interp.ptx.kernels.derived import DerivedKernel
from tcir.interp.ptx.loops import execution as on
from tcir.interp.ptx.op import BRANCH, PLAIN, Op
from tcir.interp.ptx.registers import VIEW_DTYPES, WarpStorage


class Encoder:
    """Encodes instructions of a program. predicates: slots of the predicates that the instructions
    name; their order gives their numbers
    """

    def __init__(self, storage: WarpStorage) -> None:
        self.slots = storage.slots
        self.sizes = storage.slots.sizes
        self.banks = storage.banks
        self.predicates: dict[int, int] = {}

    def encodable(self, op: Op) -> bool:
        """Whether compiled code can execute the instruction in a loop, provided that the values of
        its operands allow it.
        """
        if op.kind == BRANCH:
            return op.target >= 0
        if op.kind != PLAIN or op.aligned or op.run is not op.own or op.touches:
            return False
        if isinstance(op.form, Load):
            return self._plain(op.form)
        return self.computes(op) and op.compute is not None and len(op.compute.results) == 1

    def computes(self, op: Op) -> bool:
        """Whether the instruction only computes, and compiled code can execute it."""
        compute = op.compute
        if compute is None or op.run is not op.own:
            return False
        sources = [slot for slot, _ in compute.sources]
        divisor = sources[compute.divisor] if compute.divisor >= 0 else -1
        results = {slot for slot, _ in compute.results[:-1]}  # written before all is read
        return (
            (divisor < 0 or bool(self.slots.constants.get(divisor)))
            and all(self.sizes[slot] <= 8 for slot in sources)
            and results.isdisjoint((*sources, op.guard))
            and compute.kernels is not None
        )

    def _plain(self, load: Load) -> bool:
        """One word of global memory, to a register of its size."""
        if len(load.moves) != 1 or load.place.size not in (4, 8):
            return False
        _, slot, view = load.moves[0]
        width = {load.nbytes, load.dtype.itemsize, VIEW_DTYPES[view].itemsize, self.sizes[slot]}
        return (
            load.plain
            and not load.constant
            and load.place.space == "global"
            and width in ({4}, {8})
        )

    def row(self, op: Op, which: int = 0) -> list[int]:
        """Encodes an instruction that is `encodable`, or result `which` of an instruction that
        `computes`."""
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
            compute = op.compute
            row[on.OP], row[on.PRODUCTS] = on.COMPUTE, 0 if which else compute.products
            row[on.FLIPS] = sum(1 << n for n in compute.flips)
            for n, (slot, _) in enumerate((compute.results[which], *compute.sources)):
                self._operand(row, n, slot)
        return row

    def computing(self, op: Op) -> tuple[list[list[int]], tuple[DerivedKernel, ...]]:
        """Encodes an instruction that `computes`: a row and a kernel for each result."""
        assert op.compute is not None and op.compute.kernels is not None
        kernels = op.compute.kernels
        return [self.row(op, which) for which in range(len(kernels))], kernels

    def _operand(self, row: list[int], n: int, slot: int) -> None:
        """n: 0 for the result, then the sources."""
        size = self.sizes[slot]
        at = on.OPERANDS + 3 * n
        if size:
            bank = next(bank for bank in self.banks if bank.size == size)
            row[at : at + 3] = size, bank.rows[slot], slot
        else:
            row[at : at + 3] = on.BOOL, self._predicate(slot), slot

    def _predicate(self, slot: int) -> int:
        return self.predicates.setdefault(slot, len(self.predicates))
