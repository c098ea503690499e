"""Results of a tile, divided into parts of its columns, each of which is stored in a step of the
next tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.attributes import constant_of, defining
from tcir.dialect.limits import WARPGROUP, WGMMA_M
from tcir.dialect.warp_types import WALK
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.clone import Mapping, clone

UNITS = 4 * 16
"""Bytes of a row that four threads store at a time, 16 each (see warp_store)."""
STORED = ("f16", "bf16", "f8E4M3FN", "f8E5M2")
"""Result types that take fewer registers than sums until the next tile."""
FETCHED = ("f16", "bf16", "f32")
"""Types of operands that are loaded ahead."""
WORD = 32
"""Bits of a register."""
TAILS = "tails"
FragmentStored: TypeAlias = tc.StoreFragmentOp | tc.StoreFragmentStagedOp
"""A store of a fragment, by threads or by TMA."""


@dataclass(frozen=True)
class DeferredResult:
    """A store whose results are deferred: the sums of a tile, their epilogue and block
    quantisation, if there are any, and the store op."""

    store: FragmentStored
    epilogue: tc.FragmentEpilogueOp | None
    quantise: tc.QuantiseFragmentOp | None
    scales: tc.StoreFragmentScalesOp | None

    @classmethod
    def of(cls, store: FragmentStored) -> DeferredResult | None:
        """Returns the deferred form of a store; None if its types, its epilogue or its width do not
        allow its parts to be stored in units of 16 bytes."""
        quantise = defining(store.fragment, tc.QuantiseFragmentOp)
        values = store.fragment if quantise is None else quantise.values
        scales = None if quantise is None else next(iter(quantise.scales.uses)).owner.opview
        made = cls(store, defining(values, tc.FragmentEpilogueOp), quantise, scales)
        element = store.tensor.type.element_type
        fits = (
            WALK not in store.attributes
            and str(element) in STORED
            and str(made.sums.type.element) == "f32"
            and (
                quantise is not None
                or made.epilogue is None
                or made.epilogue.out.type.element == element
            )
            and made.sums.type.shape[1] % (made.gates * made.columns) == 0
            and store.tensor.type.shape[-1] * tc.element_bytes(element) % 16 == 0
        )
        return made if fits else None

    @property
    def sums(self) -> ir.Value:
        """The sums, as the products leave them in the accumulators."""
        if self.epilogue is not None:
            return self.epilogue.sums
        return self.store.fragment if self.quantise is None else self.quantise.values

    @property
    def ends(self) -> list[ir.OpView]:
        """The ops that follow the products: epilogue, quantisation and store."""
        ops = (self.epilogue, self.quantise, self.store, self.scales)
        return [op for op in ops if op is not None]

    @property
    def tails(self) -> ir.StringAttr:
        """Dimensions in which the tile may extend past the tensors that are read or stored."""
        op = self.store if self.epilogue is None else self.epilogue
        return op.tails if TAILS in op.attributes else ir.StringAttr.get("")

    @property
    def gates(self) -> int:
        """Number of sums from which one result is computed: two for a gated activation."""
        return 1 if self.epilogue is None else len(self.epilogue.body.blocks[0].arguments)

    @property
    def columns(self) -> int:
        """Columns of a part of the results."""
        if isinstance(self.store, tc.StoreFragmentStagedOp):
            return int(self.store.tile.shape[1])
        return UNITS // tc.element_bytes(self.store.tensor.type.element_type)

    @property
    def parts(self) -> int:
        """Number of parts of the tile."""
        return int(self.sums.type.shape[1]) // (self.gates * self.columns)

    @property
    def reads(self) -> list[tc.ElementOp]:
        """Operands of the epilogue besides the sums, if all of them are floats."""
        ops = [] if self.epilogue is None else self.epilogue.body.blocks[0]
        found = [op for op in ops if isinstance(op, tc.ElementOp)]
        return [op for op in found if str(op.value.type) in FETCHED]

    def kind(self, element: ir.Type, sums: int = 1) -> tc.FragmentType:
        """The fragment type of a part of the results. With `sums` it is the type of their sums,
        `sums` for each result."""
        rows, atom = self.sums.type.shape[0], self.sums.type.atom
        return tc.FragmentType.build([rows, sums * self.columns], element, "C", atom)

    def whole(self, element: ir.Type) -> tc.FragmentType:
        """The type of the whole tile of results."""
        rows, atom = self.sums.type.shape[0], self.sums.type.atom
        return tc.FragmentType.build([rows, self.parts * self.columns], element, "C", atom)


@dataclass(frozen=True)
class ColumnRange:
    """A range of columns of a result, which is one of its parts."""

    result: DeferredResult
    number: int

    @property
    def first(self) -> int:
        """First column of the range in the tile."""
        return self.number * self.result.columns

    @property
    def held(self) -> list[tc.FragmentType]:
        """Types of the values of this range that wait for the next tile: results, or codes and
        scales."""
        stores = [self.result.store, self.result.scales]
        return [self.result.kind(op.tensor.type.element_type) for op in stores if op is not None]

    def at(self, mapping: Mapping) -> list[ir.Value]:
        """Indices of this range in the output."""
        *outer, column = (mapping.get(value, value) for value in self.result.store.indices)
        first = constant_of(column)
        moved = index.add(column if first is None else first, self.first)
        return [*outer, index.value(moved)]

    def fetch(self, read: tc.ElementOp, outer: Mapping) -> ir.Value:
        """Loads the epilogue's operands for this range, in the tile whose values `outer` maps."""
        kind = self.result.kind(read.value.type)
        place, tails = read.attributes["map"], self.result.tails
        tensor = outer.get(read.tensor, read.tensor)
        return tc.FetchFragmentOp(tensor, self.at(outer), place, tails, kind).fragment

    def rounded(self, outer: Mapping, fetched: Mapping) -> list[ir.Value]:
        """The results of this range of columns: the sums after the epilogue, quantised or only
        rounded.

        outer: maps values before the epilogue
        fetched: fragments that hold the epilogue's operands
        """
        sums, quantise, gates = outer[self.result.sums], self.result.quantise, self.result.gates
        kind = self.result.kind(sums.type.element, gates)
        mine = tc.FragmentPartOp(sums, i64(gates * self.first), kind).columns
        if quantise is None or self.result.epilogue is not None:
            mine = self._computed(mine, outer, fetched)
        if quantise is None:
            return [mine]
        made = tc.QuantiseFragmentOp(mine, *self.held)
        if "scale_rounding" in quantise.attributes:
            made.attributes["scale_rounding"] = quantise.attributes["scale_rounding"]
        return [made.codes, made.scales]

    def _computed(self, mine: ir.Value, outer: Mapping, fetched: Mapping) -> ir.Value:
        """Applies the epilogue to these columns, or only rounds them if there is none."""
        source, store = self.result.epilogue, self.result.store
        element = store.tensor.type.element_type if source is None else source.out.type.element
        made = tc.FragmentEpilogueOp(
            mine, self.at(outer), self.result.tails, self.result.kind(element)
        )
        gates = self.result.gates
        block = made.body.blocks.append(
            *[mine.type.element] * gates, arg_locs=[store.location] * gates
        )
        with ir.InsertionPoint(block):
            if source is None:
                tc.YieldOp(arith.truncf(element, block.arguments[0]))
                return made.out
            given = source.body.blocks[0].arguments
            mapping = {**outer, **dict(zip(given, block.arguments, strict=True))}
            for op in source.body.blocks[0]:
                if isinstance(op, tc.ElementOp) and op.value in fetched:
                    with op.location:
                        place = op.attributes["map"]
                        read = tc.ElementOp(fetched[op.value], place, op.value.type)
                    mapping[op.value] = read.value
                else:
                    clone(op, mapping)
        return made.out

    def store(self, columns: list[ir.Value], at: list[ir.Value]) -> None:
        """Stores columns of the result, or its codes and scales."""
        store, scales = self.result.store, self.result.scales
        with store.location:
            if isinstance(store, tc.StoreFragmentStagedOp):
                slot = i64(self.number % store.ring.type.count)
                tc.StoreFragmentStagedOp(columns[0], store.map, store.ring, at, slot)
                return
            tc.StoreFragmentOp(columns[0], store.tensor, at, store.tails)
            if scales is not None:
                tc.StoreFragmentScalesOp(
                    columns[1], scales.tensor, at, scales.rows, scales.attributes["scales"]
                )


def registers(kind: tc.FragmentType) -> int:
    """Number of registers per thread for a fragment of C of which a warpgroup holds 64 rows."""
    return int(WGMMA_M * kind.shape[1] * kind.element.width // (WORD * WARPGROUP))


def is_by_element(read: tc.ElementOp) -> bool:
    """Whether an operand of an epilogue has a different element for each row and each column."""
    *_, row, column = range(read.out_rank)
    return row in read.dims and column in read.dims


def registers_by_column(columns: int, read: tc.ElementOp) -> int:
    """Number of registers per thread for an operand that differs by column only: two for each atom,
    which has eight columns."""
    return int(columns // 4 * read.value.type.width // WORD)


def fetched_registers(result: DeferredResult, read: tc.ElementOp) -> int:
    """Number of registers per thread for an operand of an epilogue: two per atom if it differs by
    column only, two per part of the tile if it differs by row only, else those of a whole tile."""
    *_, row, column = range(read.out_rank)
    if column not in read.dims:
        return 2 * result.parts
    if row not in read.dims:
        return registers_by_column(result.parts * result.columns, read)
    return registers(result.whole(read.value.type))
