"""Ops of kernels for CUDA cores: shuffles, fused multiply-add, integers to floats."""

from __future__ import annotations

from collections.abc import Callable

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.thread.scalar import _elementwise, float_name
from tcir.interp.thread.speller import Speller, bits, expect, only, scalars, spelling


@spelling("nvvm.shfl.sync")
def _shuffle_lanes(speller: Speller, op: ir.Operation) -> None:
    """Spells ``shfl.sync`` (PTX ISA 9.7.9.6)."""
    only(op, "kind", "return_value_and_is_valid")
    expect(op, "return_value_and_is_valid", "")
    names = ("bfly", "up", "down", "idx")
    kind = expect(op, "kind", *(f"#nvvm<shfl_kind {name}>" for name in names))
    mask, value, offset, clamp = (speller.read_one(operand) for operand in op.operands)
    if bits(op.operands[1].type) != 32:
        raise IncompleteError(f"no rule for a shuffle of {op.operands[1].type}")
    target = speller.define_one(op.results[0])
    name = kind.split()[1].rstrip(">")
    speller.emit(f"shfl.sync.{name}.b32 {target}, {value}, {offset}, {clamp}, {mask}")


@spelling("llvm.intr.fma")
def _fused(speller: Speller, op: ir.Operation) -> None:
    """Spells ``fma.rn`` (PTX ISA 9.7.3.6)."""
    _elementwise(
        speller,
        op,
        lambda s, target, sources, kind: s.emit(
            f"fma.rn.{float_name(kind)} {target}, {', '.join(sources)}"
        ),
    )


def _to_float(kind: ir.Type, old: ir.Type, sign: str) -> str:
    if bits(old) == 1:
        raise IncompleteError("no rule for an i1 as a float")
    return f"cvt.rn.{float_name(kind)}.{sign}{bits(old)}"


def _to_integer(kind: ir.Type, old: ir.Type, sign: str) -> str:
    if bits(kind) == 1:
        raise IncompleteError("no rule for a float as an i1")
    return f"cvt.rzi.{sign}{bits(kind)}.{float_name(old)}"


def _convert(
    instruction: Callable[[ir.Type, ir.Type, str], str], sign: str
) -> Callable[[Speller, ir.Operation], None]:
    """Returns the rule of a conversion, whose instruction follows from the types of result and
    operand."""

    def convert(speller: Speller, op: ir.Operation) -> None:
        only(op)
        new, old = (scalars(value.type)[0] for value in (op.results[0], op.operands[0]))
        targets = speller.define(op.results[0])
        for target, source in zip(targets, speller.read(op.operands[0]), strict=True):
            speller.emit(f"{instruction(new, old, sign)} {target}, {source}")

    return convert


spelling("arith.sitofp", "llvm.sitofp")(_convert(_to_float, "s"))
spelling("arith.uitofp", "llvm.uitofp")(_convert(_to_float, "u"))
spelling("arith.fptosi", "llvm.fptosi")(_convert(_to_integer, "s"))
spelling("arith.fptoui", "llvm.fptoui")(_convert(_to_integer, "u"))
