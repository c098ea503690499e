"""Conversions of register tiles.

A plugin outside the package: a dialect with one op, which says everything about itself here, and a
pass that uses it in the middle of the pipeline ``matmul``.
"""

from dataclasses import dataclass
from typing import ClassVar

from tcir.dialect.base import Dialect
from tcir.dialect.operation import Op
from tcir.dialect.rules import Broken, verify
from tcir.dialect.walk import walk
from tcir.interp.tensor.arith import convert
from tcir.interp.tile import execute
from tcir.interp.tile.compiler import Compiler, Frame, Step
from tcir.interp.tile.values import RegisterTile
from tcir.interp.types import dtype_of
from tcir.mlir import arith, ext, ir
from tcir.passes.nvvm.converter import Converter, lower
from tcir.passmanager.pipeline import (
    NamedPipeline,
    Pass,
    Pipeline,
    named_pipeline,
    register_pass,
    register_pipeline,
)


class Fx(Dialect, name="fx"):
    """The plugin's dialect."""


class NarrowOp(Op, dialect=Fx, name="narrow", pure=True):
    """Rounds each element of a register tile to a shorter type, to nearest even.

    ``cvt.rn`` of every element (PTX ISA 9.7.9.22).
    """

    example = """
    func.func @example(%v: vector<32x16xf32>) {
      %out = "fx.narrow"(%v) : (vector<32x16xf32>) -> vector<32x16xf16>
      return
    }
    """

    value: ext.Operand[ir.VectorType]
    out: ext.Result[ir.VectorType]


@verify(
    NarrowOp,
    "shape",
    "fx",
    "the result must have the shape of value, {want}, got {got}",
    bad={"32x16xf16": "32x8xf16"},
)
def _(op: NarrowOp) -> Broken:
    want, got = op.value.type.shape, op.out.type.shape
    return None if want == got else {"want": want, "got": got}


@verify(
    NarrowOp,
    "shorter",
    "fx",
    "the result must have shorter elements than {value}, got {out}; use arith.extf to widen",
    bad={"32x16xf16": "32x16xf32"},
)
def _(op: NarrowOp) -> Broken:
    value, out = op.value.type.element_type, op.out.type.element_type
    return None if out.width < value.width else {"value": value, "out": out}


@execute(NarrowOp)
def narrow(compiler: Compiler, op: NarrowOp) -> Step:
    (value,), result = compiler.operands(op), compiler.result(op)
    dtype, site = dtype_of(op.out.type), compiler.site(op)

    def round_elements(frame: Frame) -> None:
        tile: RegisterTile = frame.values[value]
        frame.cta_run.consume(frame, tile, site)
        rounded = convert(tile.data, dtype)
        frame.values[result] = RegisterTile(rounded, tile.quarter, tile.column)

    return round_elements


@lower(NarrowOp)
def lower_narrow(converter: Converter, op: NarrowOp) -> None:
    """``arith.truncf`` of the row of each thread."""
    row = ir.VectorType.get([op.out.type.shape[1]], op.out.type.element_type)
    converter.values[op.out] = arith.TruncFOp(row, converter.ssa(op.value)).result


@register_pass
@dataclass(frozen=True)
class UseNarrow(Pass):
    """Rounds register tiles by ``fx.narrow``."""

    name: ClassVar[str] = "use-fx-narrow"

    def run(self, module: ir.Module) -> None:
        for op in list(walk(module.operation)):
            if isinstance(op, arith.TruncFOp) and isinstance(op.result.type, ir.VectorType):
                with ir.InsertionPoint(op), op.location:
                    rounded = NarrowOp(op.operands[0], op.result.type).out
                op.result.replace_all_uses_with(rounded)
                op.operation.erase()


@dataclass(frozen=True)
class NoOptions:
    """The pipeline takes none."""


def build(_: NoOptions) -> Pipeline:
    return named_pipeline("matmul").insert("use-fx-narrow", after="tile-gemm")


register_pipeline(
    NamedPipeline("matmul-fx", "Pipeline matmul, with fx.narrow.", NoOptions, ("f16",), build)
)
