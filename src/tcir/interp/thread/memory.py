"""Pointers, loads and stores of `llvm`."""

from __future__ import annotations

from tcir._mlir import ir, llvm
from tcir.errors import IncompleteError
from tcir.interp.thread.speller import (
    Speller,
    bits,
    expect,
    only,
    pointer_space,
    register_class,
    scalars,
    spelling,
)
from tcir.program.symbols import spelled_symbol

_SPACE = {0: "", 1: ".global", 3: ".shared"}
_DYNAMIC = -(2**31)
_MAX_VECTOR_BYTES = 16


@spelling("llvm.mlir.addressof")
def _address_of(speller: Speller, op: ir.Operation) -> None:
    only(op, "global_name")
    name = ir.FlatSymbolRefAttr(op.attributes["global_name"]).value
    if pointer_space(op.results[0].type) != 3:
        raise IncompleteError(f"no rule for the address of @{name}, which is not in shared memory")
    speller.emit(f"mov.u32 {speller.define_one(op.results[0])}, {spelled_symbol(name)}")


@spelling("llvm.inttoptr", "llvm.ptrtoint")
def _pointer_cast(speller: Speller, op: ir.Operation) -> None:
    only(op)
    source = speller.read_one(op.operands[0])
    old, new = bits(op.operands[0].type), bits(op.results[0].type)
    if old == new:
        speller.rename(op.results[0], [source])
    else:
        speller.emit(f"cvt.u{new}.u{old} {speller.define_one(op.results[0])}, {source}")


@spelling("llvm.getelementptr")
def _element_pointer(speller: Speller, op: ir.Operation) -> None:
    only(op, "elem_type", "rawConstantIndices")
    base, *dynamic = op.operands
    constants = list(ir.DenseI32ArrayAttr(op.attributes["rawConstantIndices"]))
    element = ir.TypeAttr(op.attributes["elem_type"]).value
    if len(constants) != 1:
        raise IncompleteError(f"no rule for {len(constants)} indices into {element}")
    stride = _bytes(element)
    width = bits(base.type)
    source, target = speller.read_one(base), speller.define_one(op.results[0])
    if constants[0] != _DYNAMIC:
        speller.emit(f"add.s{width} {target}, {source}, {constants[0] * stride}")
        return
    index = speller.read_one(dynamic[0])
    index_bits = bits(dynamic[0].type)
    if index_bits != width:
        wide = speller.fresh(f"b{width}")
        speller.emit(f"cvt.s{width}.s{index_bits} {wide}, {index}")
        index = wide
    scaled = speller.fresh(f"b{width}")
    speller.emit(f"mul.lo.s{width} {scaled}, {index}, {stride}")
    speller.emit(f"add.s{width} {target}, {source}, {scaled}")


def _bytes(kind: ir.Type) -> int:
    """Size of an element in bytes. (A byte has no register class of its own.)"""
    if isinstance(kind, ir.IntegerType) and kind.width == 8:
        return 1
    parts = scalars(kind)
    if any(isinstance(part, llvm.PointerType) or bits(part) == 1 for part in parts):
        raise IncompleteError(f"no rule for an element of type {kind}")
    return sum(bits(part) // 8 for part in parts)


def _access(op: ir.Operation, pointer: ir.Value, kind: ir.Type) -> tuple[str, int, list[int]]:
    """Returns the state space, the scalars per instruction, and the byte offset of each
    instruction."""
    only(op, "alignment", "ordering")
    expect(op, "ordering", "0 : i64", "")
    space = pointer_space(pointer.type)
    if space not in _SPACE:
        raise IncompleteError(f"no rule for memory of address space {space}")
    parts = scalars(kind)
    if any(bits(part) == 1 for part in parts):
        raise IncompleteError(f"no rule for {kind} in memory")
    size = bits(parts[0]) // 8
    alignment = size * len(parts)
    if "alignment" in op.attributes:
        alignment = ir.IntegerAttr(op.attributes["alignment"]).value
    if alignment < size:
        raise IncompleteError(f"no rule for {kind} at an alignment of {alignment}")
    count = len(parts)
    fits = count in (1, 2, 4) and count * size <= min(alignment, _MAX_VECTOR_BYTES)
    per_instruction = count if fits else 1
    return _SPACE[space], per_instruction, list(range(0, count * size, per_instruction * size))


def _check_claim(speller: Speller, op: ir.Operation, pointer: str, kind: ir.Type) -> None:
    """Spells a trap for an address that breaks an alignment claim larger than the access itself
    needs: LLVM relies on the claim and merges accesses."""
    width, nbytes = bits(op.operands[-1].type), sum(bits(part) // 8 for part in scalars(kind))
    claimed = op.attributes["alignment"].value if "alignment" in op.attributes else 1
    if claimed > nbytes:
        rest, broken = speller.fresh(f"b{width}"), speller.fresh("pred")
        speller.emit(f"and.b{width} {rest}, {pointer}, {claimed - 1}")
        speller.emit(f"setp.ne.b{width} {broken}, {rest}, 0")
        speller.emit(f"@{broken} trap")


def _operand(registers: tuple[str, ...]) -> tuple[str, str]:
    """Returns ``.v2``, ``.v4`` or "", and the operand."""
    if len(registers) == 1:
        return "", registers[0]
    return f".v{len(registers)}", f"{{{', '.join(registers)}}}"


@spelling("llvm.load")
def _load(speller: Speller, op: ir.Operation) -> None:
    kind = op.results[0].type
    space, count, offsets = _access(op, op.operands[0], kind)
    pointer, registers = speller.read_one(op.operands[0]), speller.define(op.results[0])
    _check_claim(speller, op, pointer, kind)
    name = register_class(scalars(kind)[0])
    for i, offset in enumerate(offsets):
        vector, operand = _operand(registers[i * count : (i + 1) * count])
        speller.emit(f"ld{space}{vector}.{name} {operand}, [{pointer}+{offset}]")


@spelling("llvm.store")
def _store(speller: Speller, op: ir.Operation) -> None:
    value, target = op.operands
    space, count, offsets = _access(op, target, value.type)
    pointer, registers = speller.read_one(target), speller.read(value)
    _check_claim(speller, op, pointer, value.type)
    name = register_class(scalars(value.type)[0])
    for i, offset in enumerate(offsets):
        vector, operand = _operand(registers[i * count : (i + 1) * count])
        speller.emit(f"st{space}{vector}.{name} [{pointer}+{offset}], {operand}")
