"""Lowering of index arithmetic (to i32), arith on register tiles, scf, and the position in the
grid."""

from __future__ import annotations

from collections.abc import Iterable

from tcir._mlir import arith, ir, llvm, nvvm, scf
from tcir.dialect import tc
from tcir.dialect.attributes import defining
from tcir.errors import PassError
from tcir.passes.emit import simt
from tcir.passes.emit.fp8 import FP8
from tcir.passes.emit.functions import divided

from .converter import (
    WARP,
    Converter,
    fragment_registers,
    i32,
    lower,
    results_in_word,
)

INDEX_BITS = 32
"""Bits of an index: enough for coordinates, columns and shared-memory offsets; `stores` widens byte
offsets itself."""

WORD_BYTES = 4
"""Bytes of a register."""

_ELEMENTWISE = (
    "addf", "addi", "andi", "bitcast", "cmpf", "cmpi", "divsi", "divui", "extui",
    "maximumf", "maxnumf", "maxsi", "maxui", "minimumf", "minnumf", "minsi", "minui",
    "mulf", "muli", "negf", "ori", "remsi", "remui", "select", "shli", "shrsi", "shrui", "sitofp",
    "subf", "subi", "uitofp", "xori",
)  # fmt: skip


def converted_type(old: ir.Type) -> ir.Type:
    """The type after conversion: index becomes i32; ``vector<32xNxT>``, which has a row per thread,
    becomes ``vector<NxT>``, or words if T is a byte; ``vector<32xT>`` becomes T."""
    if isinstance(old, ir.IndexType):
        return i32()
    if isinstance(old, ir.VectorType):
        if list(old.shape) == [WARP]:
            return converted_type(old.element_type)
        if old.rank != 2 or old.shape[0] != WARP:
            raise PassError(f"expected vector<{WARP} x N x type>, got {old}")
        if not is_fp8(old) and not is_i8(old):
            return ir.VectorType.get(old.shape[1:], old.element_type)
        if old.shape[1] % WORD_BYTES:
            raise PassError(
                f"expected bytes in a number of columns that is a multiple of {WORD_BYTES}, got "
                f"{old} (registers have {WORD_BYTES} bytes)"
            )
        return ir.VectorType.get([old.shape[1] // WORD_BYTES], i32())
    return old


def is_fp8(kind: ir.Type) -> bool:
    """Whether a type is fp8 or a vector of fp8."""
    return str(kind.element_type if isinstance(kind, ir.VectorType) else kind) in FP8


def is_i8(kind: ir.Type) -> bool:
    """Whether a type is i8 or a vector of i8."""
    return str(kind.element_type if isinstance(kind, ir.VectorType) else kind) == "i8"


@lower(*(f"arith.{name}" for name in _ELEMENTWISE))
def convert_elementwise(converter: Converter, op: ir.OpView) -> None:
    """Emits the same op on the converted operands."""
    name, of = op.operation.name, op.operation.operands[-1].type
    if is_fp8(of):
        raise PassError(
            f"expected {name} on f16, bf16 or f32, got {of} (fp8 is only converted, PTX ISA "
            "9.7.9.21); extend with arith.extf first, and round last"
        )
    if is_i8(of) or is_i8(op.operation.results[0].type):
        raise PassError(
            f"expected {name} on i16 or i32, got one on i8 (a byte has no register, PTX ISA "
            "5.2.2); compute in i32, and end with arith.trunci or fptosi"
        )
    new = ir.Operation.create(
        op.operation.name,
        results=[converted_type(result.type) for result in op.operation.results],
        operands=[converter.ssa(operand) for operand in op.operation.operands],
        attributes=dict(_attributes(op)),
    )
    for result, replacement in zip(op.operation.results, new.results, strict=True):
        converter.values[result] = replacement


@lower("arith.divf")
def convert_division(converter: Converter, op: ir.OpView) -> None:
    """Emits a division. Types narrower than f32 are divided in f32, and the quotient is rounded."""
    if is_fp8(op.operation.results[0].type):
        convert_elementwise(converter, op)  # which rejects it
        return
    a, b = (converter.ssa(operand) for operand in op.operation.operands)
    converter.values[op.operation.results[0]] = divided(a, b)


def _attributes(op: ir.OpView) -> list[tuple[str, ir.Attribute]]:
    return [(name, op.operation.attributes[name]) for name in op.operation.attributes]


@lower("arith.constant")
def convert_constant(converter: Converter, op: ir.OpView) -> None:
    """Emits a constant: an index becomes an i32, and a splat keeps its value for each row."""
    result = op.operation.results[0]
    new_type = converted_type(result.type)
    value = op.operation.attributes["value"]
    if is_fp8(result.type):
        raise PassError(
            f"expected a constant of f16, bf16 or f32, got a constant of {result.type} (PTX "
            "has only conversions for fp8, ISA 9.7.9.21); make it f32 and use arith.truncf"
        )
    if isinstance(result.type, ir.IndexType):
        number = ir.IntegerAttr(value).value
        if not -(2 ** (INDEX_BITS - 1)) <= number < 2 ** (INDEX_BITS - 1):
            raise PassError(f"expected an index that fits {INDEX_BITS} bits, got {number}")
        converter.values[result] = converter.constant(number)
        return
    if isinstance(result.type, ir.VectorType):
        dense = ir.DenseElementsAttr(value)
        if not dense.is_splat:
            raise PassError(f"expected a splat constant on {result.type}, got {value}")
        value = ir.DenseElementsAttr.get_splat(new_type, dense.get_splat_value())
    converter.values[result] = arith.ConstantOp(new_type, value).result


@lower("arith.index_cast", "arith.index_castui")
def convert_index_cast(converter: Converter, op: ir.OpView) -> None:
    """Lowers to a conversion to another width, or to nothing."""
    result, old = op.operation.results[0], converter.ssa(op.operation.operands[0])
    target = converted_type(result.type)
    source_bits, target_bits = ir.IntegerType(old.type).width, ir.IntegerType(target).width
    if source_bits < target_bits:
        extend = arith.ExtSIOp if op.operation.name == "arith.index_cast" else arith.ExtUIOp
        old = extend(target, old).result
    elif source_bits > target_bits:
        old = arith.TruncIOp(target, old).result
    converter.values[result] = old


@lower("vector.broadcast")
def convert_broadcast(converter: Converter, op: ir.OpView) -> None:
    """Lowers a broadcast. A broadcast to lanes emits nothing; a broadcast of a number, or of a
    number per row, to columns emits a vector."""
    result, source = op.operation.results[0], op.operation.operands[0]
    number, row = converter.ssa(source), converted_type(result.type)
    if isinstance(source.type, ir.VectorType):
        if list(source.type.shape) != [WARP, 1]:
            raise PassError(
                f"expected a number, or one for each row, got {source.type} to {result.type}"
            )
        number = llvm.extractelement(number, converter.constant(0))
    if isinstance(row, ir.VectorType):
        number = converter.vector([number] * row.shape[0])
    converter.values[result] = number


@lower("vector.bitcast")
def convert_bitcast(converter: Converter, op: ir.OpView) -> None:
    """Reinterprets the bits of each row. Rounding f32 to words of two numbers takes one instruction
    per word (PTX ISA 9.7.9.21), which is emitted here, because from a conversion and a cast LLVM
    would make 64-bit words and split them."""
    result, source = op.operation.results[0], op.operation.operands[0]
    rounding, row = defining(source), converted_type(result.type)
    if str(row).endswith("xi32>") and _rounds_f32(rounding):
        numbers = converter.ssa(rounding.operands[0])
        places = [converter.constant(n) for n in range(numbers.type.shape[0])]
        each = [llvm.extractelement(numbers, place) for place in places]
        cvt = f"cvt.rn.{source.type.element_type}x2.f32 $0, $2, $1;"
        pairs = zip(each[0::2], each[1::2], strict=True)
        converter.values[result] = simt.vector_of(
            [simt.asm(row.element_type, cvt, "=r,f,f", pair) for pair in pairs]
        )
        return
    converter.values[result] = llvm.bitcast(row, converter.ssa(source))


def _rounds_f32(op: ir.OpView | None) -> bool:
    """Whether an op rounds f32 to f16 or bf16."""
    if op is None or op.operation.name != "arith.truncf":
        return False
    kinds = [str(each.type.element_type) for each in (op.operands[0], op.results[0])]
    return kinds[0] == "f32" and kinds[1] in ("f16", "bf16")


@lower("vector.deinterleave")
def convert_deinterleave(converter: Converter, op: ir.OpView) -> None:
    """Separates the even and the odd columns of a row."""
    row = converter.ssa(op.operation.operands[0])
    columns = row.type.shape[0]
    for first, result in enumerate(op.operation.results):
        converter.values[result] = llvm.shufflevector(row, range(first, columns, 2))


@lower("vector.interleave")
def convert_interleave(converter: Converter, op: ir.OpView) -> None:
    """Interleaves the columns of two rows."""
    even, odd = (converter.ssa(operand) for operand in op.operation.operands)
    columns = even.type.shape[0]
    mixed = llvm.mlir_poison(ir.VectorType.get([2 * columns], even.type.element_type))
    for place in range(2 * columns):
        row = odd if place % 2 else even
        number = llvm.extractelement(row, converter.constant(place // 2))
        mixed = llvm.insertelement(mixed, number, converter.constant(place))
    converter.values[op.operation.results[0]] = mixed


@lower(tc.LaneIndexOp)
def convert_lane_index(converter: Converter, op: ir.OpView) -> None:
    """Lowers to the thread's number in its warp."""
    converter.values[op.lanes] = converter.lane


@lower("gpu.block_id")
def convert_block_id(converter: Converter, op: ir.OpView) -> None:
    """Lowers to ``%ctaid.{x,y,z}``."""
    dimension = str(op.operation.attributes["dimension"])
    letter = next(letter for letter in "xyz" if dimension.endswith((f" {letter}>", f"<{letter}>")))
    converter.values[op.operation.results[0]] = nvvm.read_ptx_sreg(f"ctaid.{letter}")


@lower("scf.for")
def convert_for(converter: Converter, op: scf.ForOp) -> None:
    """Emits the same loop with i32 bounds and induction variable."""
    bounds = [converter.ssa(operand) for operand in list(op.operation.operands)[:3]]
    inits = [part for init in op.initArgs for part in converter.parts(init)]
    new = scf.ForOp(*bounds, inits)
    _convert_block(converter, op.operation.regions[0], new.operation.regions[0].blocks[0])
    _bind(converter, op.operation.results, new.operation.results)


@lower("scf.while")
def convert_while(converter: Converter, op: scf.WhileOp) -> None:
    """Emits the same loop with both regions converted."""
    inits = [part for start in op.operation.operands for part in converter.parts(start)]

    def kinds(values: Iterable[ir.Value]) -> list[ir.Type]:
        return [kind for value in values for kind in _carried(converter, value.type)]

    new = scf.WhileOp(kinds(op.operation.results), inits)
    for old_region, region in zip(op.operation.regions, new.operation.regions, strict=True):
        block = region.blocks.append(*kinds(old_region.blocks[0].arguments))
        _convert_block(converter, old_region, block)
    _bind(converter, op.operation.results, new.operation.results)


def _convert_block(converter: Converter, region: ir.Region, block: ir.Block) -> None:
    """Fills `block` with what the only block of `region` becomes."""
    _bind(converter, region.blocks[0].arguments, block.arguments)
    with ir.InsertionPoint(block):
        converter.convert(region.blocks[0])


def _bind(converter: Converter, old: Iterable[ir.Value], new: Iterable[ir.Value]) -> None:
    """Binds values to the parts that carry them, in order."""
    parts = list(new)
    for value in old:
        converter.bind(value, parts)


@lower("scf.condition")
def convert_condition(converter: Converter, op: ir.OpView) -> None:
    """Emits the same terminator with its operands converted."""
    condition, *passed = op.operation.operands
    parts = [part for operand in passed for part in converter.parts(operand)]
    scf.ConditionOp(converter.ssa(condition), parts)


def _carried(converter: Converter, kind: ir.Type) -> list[ir.Type]:
    """Types of the values that control flow carries for one of type `kind`."""
    if not isinstance(kind, tc.FragmentType):
        return [converted_type(kind)]
    per = results_in_word(kind)
    word = i32() if per > 1 or kind.operand == "A" else kind.element
    return [word] * (fragment_registers(converter.warps, kind) // per)


@lower("scf.if")
def convert_if(converter: Converter, op: scf.IfOp) -> None:
    """Emits the same branch with its regions converted."""
    results = list(op.operation.results)
    types = [kind for result in results for kind in _carried(converter, result.type)]
    has_else = len(op.operation.regions[1].blocks) > 0
    new = scf.IfOp(converter.ssa(op.operation.operands[0]), types, has_else=has_else)
    for old_region, region in zip(op.operation.regions, new.operation.regions, strict=True):
        if len(old_region.blocks):
            with ir.InsertionPoint(region.blocks[0]):
                converter.convert(old_region.blocks[0])
    _bind(converter, results, new.operation.results)


@lower("scf.yield")
def convert_yield(converter: Converter, op: ir.OpView) -> None:
    """Emits the same terminator with its operands converted."""
    scf.YieldOp([p for operand in op.operation.operands for p in converter.parts(operand)])
