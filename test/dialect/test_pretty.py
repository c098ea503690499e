"""The short form for reading."""

from __future__ import annotations

import inspect
import re

import pytest

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.operation import all_ops
from tcir.dialect.pretty import pretty

from .shared import shared_context

assert tc  # imports every op
EXAMPLES = {op.OPERATION_NAME: inspect.cleandoc(op.example) for op in all_ops()}


def parse(text: str) -> ir.Module:
    return ir.Module.parse(text, shared_context(allow_unregistered=True))


NESTED = """
func.func @f(%n: index, %x: memref<4xf32>) attributes {tc.kernel} {
  %c0 = arith.constant 0 : index
  %bars = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<4 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %i = %c0 to %n step %n {
      %t = "tc.smem_tile"() {tag = "a"} : () -> !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
    }
    %u = "foo.bar"() ({
    ^bb0(%z: i32):
      "foo.yield"() : () -> ()
    }) : () -> !tc.tmem<array<i64: 128, 64>, bf16>
  }) {kind = "mma", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
  }) {kind = "epilogue", warps = array<i64: 0, 1>, threads = "warp"} : () -> ()
  return
}
"""

SHORT = """\
module {
  func.func @f(%arg0: index, %arg1: memref<4xf32>) attributes {tc.kernel} {
    %c0 = arith.constant 0 : index
    %0 = tc.mbarrier_init arrivals=1 : ring<4 x mbarrier>
    tc.role mma warps=[4] threads=one (%arg2: index) {
      scf.for %arg3 = %c0 to %arg0 step %arg0 {
        %2 = tc.smem_tile tag=a : smem<64x64xf16 MN 128B>
      }
      %1 = "foo.bar"() ({
      ^bb0(%arg3: i32):
        "foo.yield"() : () -> ()
      }) : () -> tmem<128x64xbf16>
    }
    tc.role epilogue warps=[0, 1] threads=warp (%arg2: index) {
    }
    return
  }
}
"""


def test_nested_regions() -> None:
    assert pretty(parse(NESTED)) == SHORT


@pytest.mark.parametrize(
    ("op", "line"),
    [
        ("tc.mma", "tc.mma %arg0, %arg1[j=0], %arg2[j=0] acc=%arg3 .ashift"),
        (
            "tc.mma_block_scale",
            "tc.mma_block_scale %arg0, %arg1[j=1], %arg2[j=1] scales %arg3[4:0], %arg4[4:0] "
            "acc=%arg5 mxf4nvf4 (e2m1 x e2m1, ue4m3 / 16)",
        ),
        ("tc.cp_scales", "tc.cp_scales %arg0[block=3] -> %arg1[column=%arg2]"),
        ("tc.cp", "tc.cp %arg0[j=3] -> %arg1[j=3]"),
        (
            "tc.tma_load",
            "tc.tma_load %0[%arg3, %arg3, %arg3, %arg3] -> %arg1[row=96] signal %arg2 nbytes=4096",
        ),
        ("tc.tmem_ld", "%0 = tc.tmem_ld %arg0[quarter=%arg1, column=%arg2] : vector<32x16xf32>"),
        (
            "tc.store_rows",
            "tc.store_rows %arg0 -> %arg1[%arg2, %arg3, %arg4, %arg5] row_dim=2 rows=30",
        ),
        ("tc.mbarrier_wait", "tc.mbarrier_wait %arg0 parity=%arg1"),
        ("tc.slot", "%0 = tc.slot %arg0[%arg1]"),
        ("tc.tmem_tile", "%1 = tc.tmem_tile %0 column=0 : tmem<128x64xf32>"),
    ],
)
def test_form(op: str, line: str) -> None:
    assert line in [each.strip() for each in pretty(parse(EXAMPLES[op])).splitlines()]


@pytest.mark.parametrize("op", EXAMPLES)
def test_nothing_is_lost(op: str) -> None:
    """Every value name and attribute of the generic form is in the short one; no generic op is."""
    module = parse(EXAMPLES[op])
    short = pretty(module)
    assert '"tc.' not in short and "!tc." not in short and "operandSegmentSizes" not in short
    assert short == pretty(module)
    for name in re.findall(r"%\w+", str(module)):
        assert name in short
    for number in re.findall(r"(?<=[ :])\d+(?= : i64)", str(module)):
        assert re.search(rf"\b{number}\b", short)


def test_other_modules_print_as_they_are() -> None:
    module = parse("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    assert pretty(module) == str(module)


def test_op_unlike_its_declaration_stays_generic() -> None:
    module = parse(EXAMPLES["tc.fence"])
    fence = module.body.operations[0].regions[0].blocks[0].operations[0]
    del fence.attributes["kind"]
    assert '"tc.fence"() : () -> ()' in pretty(module)
