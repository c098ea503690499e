"""The state of a kernel's conversion to threads, and the registry of lowering rules.

A `tc` value that is a number becomes an SSA value. A `tc` value that is an address with static
facts (a tile, barrier, ring or tensor) becomes one of the small records below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.cta_pair import LEADER, PAIR
from tcir.dialect.fragments import share
from tcir.dialect.limits import WARP as WARP
from tcir.dialect.multicast import CTA_MASK, masks_of
from tcir.dialect.operation import traits_of
from tcir.errors import PassError
from tcir.passes.emit import simt
from tcir.passes.emit.gpu_module import pointer_type


@dataclass(frozen=True)
class SharedAddress:
    """The address ``base + offset`` in the shared window, in bytes; `base` is an i32 value."""

    base: ir.Value
    offset: int = 0

    def plus(self, nbytes: int) -> SharedAddress:
        """The address that is `nbytes` bytes after this one."""
        return SharedAddress(self.base, self.offset + nbytes)


@dataclass
class SmemTile:
    """A shared-memory tile.

    descriptors: the tile's first descriptor, by block (see `compute`)
    slot: number of the tile in a ring whose first slot is at address `offset` and whose slots are
        `stride` bytes apart
    """

    type: tc.SmemType
    address: SharedAddress
    slot: ir.Value | None = None
    stride: int = 0
    descriptors: list[tuple[ir.Block, ir.Value]] = field(default_factory=list)


@dataclass(frozen=True)
class StagedTile:
    """A shared-memory tile that warps read; see `tcir.dialect.warp_types`."""

    type: tc.StagedType
    address: SharedAddress


@dataclass(frozen=True)
class Fragment:
    """The registers in which a thread holds its part of a fragment, atom by atom. packed: whether a
    register is a word of several results

    Scales are always packed. A word for 64 columns has the scales of the upper row's two blocks in
    its low half, and the scales of the row 8 rows below in its high half.
    """

    type: tc.FragmentType
    registers: tuple[ir.Value, ...]
    packed: bool = False

    @property
    def carried(self) -> tuple[ir.Value, ...]:
        """The values that control flow carries: words of two 16-bit results or of four 8-bit
        results."""
        per = results_in_word(self.type)
        if self.packed or per == 1:
            return self.registers
        groups = zip(*(self.registers[n::per] for n in range(per)), strict=True)
        return tuple(
            llvm.bitcast(i32(), simt.vector_of(group)) if per == 2 else simt.bytes_in_word(group)
            for group in groups
        )

    @property
    def numbers(self) -> tuple[ir.Value, ...]:
        """One register per number, unpacked from the values that control flow carries."""
        if not self.packed:
            return self.registers
        if results_in_word(self.type) == 4:
            shifts = range(0, 32, 8)
            return tuple(
                simt.both_bits(simt.right(word, shift), 0xFF)
                for word in self.registers
                for shift in shifts
            )
        kind = ir.VectorType.get([2], self.type.element)
        places = [arith.ConstantOp(i32(), n).result for n in range(2)]
        pairs = [llvm.bitcast(kind, word) for word in self.registers]
        return tuple(llvm.extractelement(pair, place) for pair in pairs for place in places)


RESULTS = {"f16": 2, "bf16": 2, "f8E4M3FN": 4, "f8E5M2": 4, "f8E8M0FNU": 32}
"""Results per word, by type; for scales, of which 8 elements of a thread share one, elements of
32."""


def results_in_word(kind: tc.FragmentType) -> int:
    """Number of a fragment's results in one word that control flow carries."""
    return RESULTS.get(str(kind.element), 1) if kind.operand == "C" else 1


@dataclass(frozen=True)
class Mbarrier:
    """An mbarrier."""

    address: SharedAddress


@dataclass
class TmemBase:
    """An allocation of tensor memory. Its address is known only after it has been read after a CTA
    barrier."""

    slot: int
    columns: int
    warp: int
    cta_group: int = 1
    value: ir.Value | None = None


@dataclass(frozen=True)
class TmemTile:
    """A tensor-memory tile at ``base + column (+ extra)``; `extra` is an i32 value or None.

    disabled: a vector<4xi32> with the lanes that an mma must not write, or None.
    """

    type: tc.TmemType
    base: TmemBase
    column: int
    extra: ir.Value | None = None
    disabled: ir.Value | None = None


@dataclass(frozen=True)
class Ring:
    """Equal objects that are ``stride`` bytes of shared memory, or ``stride`` columns of tensor
    memory, apart."""

    first: SmemTile | StagedTile | Mbarrier | TmemTile
    stride: int


@dataclass(frozen=True)
class LaneMasks:
    """A table of lane masks in shared memory, 16 bytes per entry."""

    address: SharedAddress


@dataclass(frozen=True)
class LaunchResponses:
    """Responses of cluster launch control, 16 bytes each."""

    address: SharedAddress


@dataclass(frozen=True)
class GlobalTensor:
    """A contiguous row-major tensor in global memory: an argument, possibly reshaped."""

    argument: int
    shape: tuple[int, ...]
    element: ir.Type


@dataclass(frozen=True)
class TensorMap:
    """A tensor map that is a parameter of the kernel."""

    pointer: ir.Value


@dataclass
class Loading:
    """The registers of a `tc.tmem_ld` whose `tc.tmem_wait` has not been converted yet."""

    raw: ir.Value


class Converter:
    """Converts one kernel: emits ops at the insertion point and maps each value to its conversion.

    maps:     tensor map parameters not yet assigned to a `tc.make_tensor_map`, in program order
    pointers: the pointer parameters, by number of the kernel's argument
    pending:  loads from tensor memory that the next wait of this block completes
    bases:    allocations of tensor memory that were converted so far
    ctas:     CTAs of a cluster
    """

    def __init__(self, maps: list[ir.Value], pointers: dict[int, ir.Value]) -> None:
        self.values: dict[ir.Value, Any] = {}
        self.maps = maps
        self.pointers = pointers
        self.pending: list[ir.Value] = []
        self.bases: list[TmemBase] = []
        self.in_role = False
        self.placed: list[tc.RoleOp] = []
        """Roles that are converted already."""
        self.of_warps = False
        self.warps = (1, 1)
        self.threads = WARP
        self.ctas = 1

    def begin(self, entry: ir.Block, smem_symbol: str) -> None:
        """Emits the start that every kernel has: the base of shared memory, and the thread, warp
        and lane index."""
        self.entry = entry
        self._constants: dict[tuple[int, str], ir.Value] = {}
        self.at_entry: dict[Any, ir.Value] = {}
        """Values that depend on the thread only, computed once at the kernel's entry."""
        self.linears: dict[Any, Any] = {}
        """Functions of the thread's number proven linear, by key."""
        shared = llvm.mlir_addressof(pointer_type(3), smem_symbol)
        self.smem = llvm.ptrtoint(i32(), shared)
        self.thread = nvvm.read_ptx_sreg("tid.x")
        self.warp = arith.ShRUIOp(self.thread, self.constant(5)).result
        self.lane = arith.AndIOp(self.thread, self.constant(WARP - 1)).result

    def cta_rank(self) -> ir.Value:
        """The number of the CTA in its cluster, read once at the kernel's entry."""
        if "rank" not in self.at_entry:
            with ir.InsertionPoint.after(self.lane.owner):
                self.at_entry["rank"] = nvvm.read_ptx_sreg("cluster.ctarank")
        return self.at_entry["rank"]

    def is_leader(self) -> ir.Value:
        """Whether the CTA has an even rank and is therefore the leader of its pair."""
        if "leader" not in self.at_entry:
            rank, one, zero = self.cta_rank(), self.constant(PAIR - 1), self.constant(0)
            with ir.InsertionPoint.after(rank.owner):
                odd = arith.AndIOp(rank, one).result
                even = arith.CmpIOp(arith.CmpIPredicate.eq, odd, zero).result
            self.at_entry["leader"] = even
        return self.at_entry["leader"]

    def mask(self, op: ir.OpView) -> ir.Value | None:
        """The CTAs of the cluster that an op reaches, an i16; None for an op without a mask.

        The masks of all CTAs fit in one 64-bit constant. Each CTA shifts its own mask out of this
        constant once, at the kernel's entry.
        """
        if CTA_MASK not in op.attributes:
            return None
        try:
            masks = masks_of(op, self.ctas)
        except ValueError as error:
            raise PassError(str(error), op.location) from None
        if len(set(masks)) == 1:
            return self.constant(masks[0], 16)
        if ("mask", *masks) not in self.at_entry:
            table = sum(mask << self.ctas * rank for rank, mask in enumerate(masks))
            signed = table - (1 << 64) if table >> 63 else table
            rank, step = self.cta_rank(), self.constant(self.ctas)
            every, ones = self.constant(signed, 64), self.constant((1 << self.ctas) - 1, 16)
            i16, i64 = (ir.IntegerType.get_signless(bits) for bits in (16, 64))
            with ir.InsertionPoint.after(rank.owner):
                place = arith.ExtUIOp(i64, arith.MulIOp(rank, step).result).result
                low = arith.TruncIOp(i16, arith.ShRUIOp(every, place).result).result
                self.at_entry["mask", *masks] = arith.AndIOp(low, ones).result
        return self.at_entry["mask", *masks]

    @contextmanager
    def _executing(self, op: ir.OpView) -> Iterator[None]:
        """Emits an op with the attribute ``leader`` into a branch that the leader takes."""
        if LEADER not in op.attributes or isinstance(op, tc.RoleOp):
            yield
            return
        with simt.only_if(self.is_leader()):
            yield

    def elements(self, vector: ir.Value) -> list[ir.Value]:
        """The elements of a vector."""
        count = ir.VectorType(vector.type).shape[0]
        return [llvm.extractelement(vector, self.constant(n)) for n in range(count)]

    def vector(self, values: Sequence[ir.Value]) -> ir.Value:
        """A vector of these elements."""
        whole = llvm.mlir_poison(ir.VectorType.get([len(values)], values[0].type))
        for place, value in enumerate(values):
            whole = llvm.insertelement(whole, value, self.constant(place))
        return whole

    def constant(self, value: int, bits: int = 32) -> ir.Value:
        """A constant in the kernel's entry block, built once per value and type."""
        integer = ir.IntegerType.get_signless(bits)
        key = (value, str(integer))
        if key not in self._constants:
            with ir.InsertionPoint.at_block_begin(self.entry):
                attribute = ir.IntegerAttr.get(integer, value)
                self._constants[key] = arith.ConstantOp(integer, attribute).result
        return self._constants[key]

    def value(self, old: ir.Value) -> Any:
        """The result of the conversion of the value `old`."""
        new = self.values.get(old)
        if isinstance(new, Loading):
            raise PassError(
                "expected tc.tmem_wait before the first use of this tc.tmem_ld: its registers are "
                "not ready before (PTX ISA 9.7.16.8)",
                old.owner.location,
            )
        if new is None:
            raise PassError(f"expected a converted value, got {old}")
        return new

    def ssa(self, old: ir.Value) -> ir.Value:
        """The result of the conversion of the value `old`, which must be a number and therefore an
        SSA value."""
        new = self.value(old)
        if not isinstance(new, ir.Value):
            raise PassError(f"expected a number, got {old}", self._location(old))
        return new

    def parts(self, old: ir.Value) -> list[ir.Value]:
        """The values that control flow carries in place of `old`."""
        new = self.value(old)
        return list(new.carried) if isinstance(new, Fragment) else [self.ssa(old)]

    def bind(self, old: ir.Value, parts: list[ir.Value]) -> None:
        """Maps `old` to the values that control flow carries for it, which are removed from the
        front of `parts`."""
        if isinstance(old.type, tc.FragmentType):
            per = results_in_word(old.type)
            count = fragment_registers(self.warps, old.type) // per
            self.values[old] = Fragment(old.type, tuple(parts[:count]), packed=per > 1)
            del parts[:count]
        else:
            self.values[old] = parts.pop(0)

    def record(self, old: ir.Value, kind: type[RecordType]) -> RecordType:
        """The conversion of `old`, which must be a record of class `kind`."""
        new = self.value(old)
        if not isinstance(new, kind):
            raise PassError(
                f"expected {kind.__name__}, got {type(new).__name__} of type {old.type}",
                self._location(old),
            )
        return new

    @staticmethod
    def _location(value: ir.Value) -> ir.Location | None:
        return None if isinstance(value.owner, ir.Block) else value.owner.location

    def add(self, value: ir.Value, addend: int) -> ir.Value:
        """Emits ``value + addend`` in i32."""
        return arith.AddIOp(value, self.constant(addend)).result if addend else value

    def shared(self, address: SharedAddress, space: int = 3) -> ir.Value:
        """A pointer to shared memory. With `space` 7 it is the same address in the window of the
        cluster."""
        return llvm.inttoptr(pointer_type(space), self.add(address.base, address.offset))

    def tmem_columns(self, tile: TmemTile, column: int = 0) -> ir.Value:
        """The i32 tensor-memory address of lane 0 of column `column` of `tile`."""
        if tile.base.value is None:
            raise PassError(
                "expected tc.cta_barrier between tc.tmem_alloc and the first use of its base: the "
                "address arrives through shared memory (PTX ISA 9.7.16.7)"
            )
        address = tile.base.value
        if tile.extra is not None:
            address = arith.AddIOp(address, tile.extra).result
        return self.add(address, tile.column + column)

    def convert(self, block: ir.Block) -> None:
        """Converts the ops of `block` at the current insertion point."""
        # A wait completes the loads of its own block: registers of an inner one are not there
        # outside, and an inner block may not be run at all.
        outside, self.pending = self.pending, []
        for op in block.operations:
            self.convert_op(op)
        self.pending = outside

    def convert_op(self, op: ir.OpView) -> None:
        """Converts one op by its rule; raises `PassError` at the op's location if there is no
        rule."""
        convert = RULES.get(op.operation.name)
        if convert is None:
            raise PassError(
                f"expected an op that convert-tc-to-nvvm knows, got '{op.operation.name}'; "
                "known: " + ", ".join(sorted(RULES)),
                op.location,
            )
        with op.location:
            try:
                self._check_issuer(op)
                with self._executing(op):
                    convert(self, op)
            except PassError as error:
                error.location = error.location or op.location
                raise

    def _check_issuer(self, op: ir.OpView) -> None:
        """Rejects an op of all threads in a role, and one of a thread or warp outside of roles."""
        issuer = traits_of(op).issued_by
        if issuer == "cta" and self.in_role:
            raise PassError(
                f"expected {op.operation.name} outside tc.role: all threads take part in it"
            )
        if issuer in ("thread", "warp"):
            require_role(self, op)


def fragment_registers(warps: tuple[int, int], kind: tc.FragmentType) -> int:
    """Number of registers in which a thread holds its part of a fragment."""
    part = share(kind.atom, kind.operand, kind.shape, warps)
    return len(part.atoms()) * part.registers


Rule = Callable[..., None]
RULES: dict[str, Rule] = {}
RecordType = TypeVar("RecordType")


def lower(*ops: str | type[ir.OpView]) -> Callable[[Rule], Rule]:
    """Registers the decorated function as the lowering of the given ops: op classes, or names of
    upstream ops."""

    def register(function: Rule) -> Rule:
        for op in ops:
            RULES[op if isinstance(op, str) else op.OPERATION_NAME] = function
        return function

    return register


def i32() -> ir.Type:
    """The type i32."""
    return ir.IntegerType.get_signless(32)


def integer_attribute(op: ir.OpView, name: str) -> int:
    """The integer attribute `name` of `op`, which the memory planner sets."""
    if name not in op.operation.attributes:
        raise PassError(
            f"expected attribute '{name}' on '{op.operation.name}', got none; "
            "run plan-memory first",
            op.location,
        )
    return integer(op, name)


def require_role(converter: Converter, op: ir.OpView) -> None:
    """Rejects an op that only selected threads may execute if it is outside `tc.role`."""
    if not converter.in_role:
        raise PassError(
            f"expected '{op.operation.name}' inside tc.role, got it outside, where all threads of "
            "the CTA would execute it; run assign-roles first",
            op.location,
        )
