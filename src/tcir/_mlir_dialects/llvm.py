"""One function for each llvm op that passes create; the bindings' module would define some 300 op
classes.

A function has the name of its op (``llvm.mlir.global``: `mlir_global`), creates the op at the
insertion point, and returns the op's result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcir._mlir import import_bindings, ir

from .build import effect, integer, integer_type, integers, value

_types = import_bindings("_mlir_libs._mlirDialectsLLVM")
PointerType, StructType = _types.PointerType, _types.StructType

_DYNAMIC_INDEX = -(2**31)
"""What `rawConstantIndices` has in the place of an operand (LLVM::GEPOp::kDynamicIndex)."""


def func(
    name: str,
    arguments: Sequence[ir.Type],
    argument_attributes: Sequence[ir.Attribute],
    attributes: Mapping[str, ir.Attribute],
) -> ir.Block:
    """A function without results; returns its empty entry block."""
    kind = ir.Type.parse(f"!llvm.func<void ({', '.join(map(str, arguments))})>")
    own = {
        "sym_name": ir.StringAttr.get(name),
        "function_type": ir.TypeAttr.get(kind),
        "arg_attrs": ir.ArrayAttr.get(list(argument_attributes)),
    }
    made = ir.Operation.create("llvm.func", attributes={**own, **attributes}, regions=1)
    return made.regions[0].blocks.append(*arguments, arg_locs=[made.location] * len(arguments))


def return_() -> None:
    """Return without a value."""
    effect("llvm.return")


def mlir_global(name: str, kind: ir.Type, *, space: int, alignment: int) -> None:
    """An external variable in address space `space`, aligned to `alignment` bytes."""
    attributes = {
        "global_type": ir.TypeAttr.get(kind),
        "sym_name": ir.StringAttr.get(name),
        "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
        "addr_space": integer(space),
        **_aligned(alignment),
    }
    ir.Operation.create("llvm.mlir.global", attributes=attributes, regions=1)


def mlir_addressof(kind: ir.Type, symbol: str) -> ir.Value:
    """The address of a variable."""
    return value("llvm.mlir.addressof", kind, global_name=ir.FlatSymbolRefAttr.get(symbol))


def mlir_poison(kind: ir.Type) -> ir.Value:
    """A poison value, to insert elements into."""
    return value("llvm.mlir.poison", kind)


def load(kind: ir.Type, pointer: ir.Value, *, alignment: int | None = None) -> ir.Value:
    """Loads a value of type `kind`, with that type's alignment unless `alignment` (bytes) is
    given."""
    return value("llvm.load", kind, pointer, **_aligned(alignment))


def store(stored: ir.Value, pointer: ir.Value, *, alignment: int | None = None) -> None:
    """Stores a value, with its type's alignment unless `alignment` (bytes) is given."""
    effect("llvm.store", stored, pointer, **_aligned(alignment))


def getelementptr(pointer: ir.Value, offset: ir.Value | int) -> ir.Value:
    """`pointer` plus a number of bytes."""
    constant, dynamic = (offset, []) if isinstance(offset, int) else (_DYNAMIC_INDEX, [offset])
    return value(
        "llvm.getelementptr",
        pointer.type,
        pointer,
        *dynamic,
        rawConstantIndices=integers(constant),
        elem_type=ir.TypeAttr.get(integer_type(8)),
    )


def inttoptr(kind: ir.Type, address: ir.Value) -> ir.Value:
    """Converts an address to a pointer."""
    return value("llvm.inttoptr", kind, address)


def ptrtoint(kind: ir.Type, pointer: ir.Value) -> ir.Value:
    """Converts a pointer to its address."""
    return value("llvm.ptrtoint", kind, pointer)


def bitcast(kind: ir.Type, operand: ir.Value) -> ir.Value:
    """The bits of `operand` as a value of type `kind`."""
    return value("llvm.bitcast", kind, operand)


def extractelement(vector: ir.Value, position: ir.Value) -> ir.Value:
    """The element of a vector at `position`."""
    kind = ir.VectorType(vector.type).element_type
    return value("llvm.extractelement", kind, vector, position)


def insertelement(vector: ir.Value, element: ir.Value, position: ir.Value) -> ir.Value:
    """The vector with `element` at `position`."""
    return value("llvm.insertelement", vector.type, vector, element, position)


def shufflevector(vector: ir.Value, positions: Sequence[int]) -> ir.Value:
    """The elements of `vector` at `positions`."""
    kind = ir.VectorType.get([len(positions)], ir.VectorType(vector.type).element_type)
    return value("llvm.shufflevector", kind, vector, vector, mask=integers(*positions))


def extractvalue(kind: ir.Type, struct: ir.Value, position: int) -> ir.Value:
    """Member `position` of a struct; the member's type is `kind`."""
    place = ir.DenseI64ArrayAttr.get([position])
    return value("llvm.extractvalue", kind, struct, position=place)


def intr_fma(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a · b + c, rounded once."""
    return value("llvm.intr.fma", a.type, a, b, c)


def inline_asm(
    kind: ir.Type | None,
    operands: Sequence[ir.Value],
    text: str,
    constraints: str,
    *,
    has_side_effects: bool = False,
) -> ir.Operation:
    """PTX with a result of type `kind`, if any."""
    attributes: dict[str, ir.Attribute] = {
        "asm_string": ir.StringAttr.get(text),
        "constraints": ir.StringAttr.get(constraints),
    }
    if has_side_effects:
        attributes["has_side_effects"] = ir.UnitAttr.get()
    results = [] if kind is None else [kind]
    return ir.Operation.create("llvm.inline_asm", results, list(operands), attributes)


def _aligned(alignment: int | None) -> dict[str, ir.Attribute]:
    if alignment is None:
        return {}
    return {"alignment": integer(alignment, 64)}
