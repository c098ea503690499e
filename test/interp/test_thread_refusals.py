# ruff: noqa: E501 (lines of IR)
"""What the naive spelling has no rule for is named, with its place; nothing is guessed."""

from __future__ import annotations

import pytest
from thread_kernels import kernel

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.errors import InputError
from tcir.interp import thread
from tcir.interp.thread import Spelling, spell


def spelled(text: str) -> Spelling:
    with ir.Context() as context, ir.Location.unknown():
        tc.load(context)
        return spell(ir.Module.parse(text), "f")


TMEM = "%t = llvm.inttoptr %tid : i32 to !llvm.ptr<6>\n    %one = arith.constant true\n    %d = llvm.mlir.constant(64 : i64) : i64\n    "
SMEM = "%s = llvm.mlir.addressof @smem : !llvm.ptr<3>\n    "
MMA = "nvvm.tcgen05.mma %t, %d, %d, %tid, %one {kind = #nvvm.tcgen05_mma_kind<f16>, ctaGroup = #nvvm.cta_group<GROUP>MORE} : (!llvm.ptr<6>, i64, i64, i32, i1)"

CASES = {
    "math.exp %a : f32": "math.exp: no rule at thread level",
    "memref.alloc() : memref<4xf32>": "memref.alloc: no rule at thread level",
    "arith.divf %h, %h : f16": "arith.divf: no rule for a division of f16",
    "arith.truncf %a upward : f32 to f16": "arith.truncf: no rule for roundingmode",
    "llvm.load volatile %p0 : !llvm.ptr<1> -> f32": "llvm.load: no rule for the attribute volatile_",
    "llvm.load %p0 atomic monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> f32": "llvm.load: no rule for ordering",
    "llvm.load %p0 {alignment = 2 : i64} : !llvm.ptr<1> -> i32": "llvm.load: no rule for i32 at an alignment of 2",
    "llvm.load %p0 : !llvm.ptr<1> -> i8": "llvm.load: no register for a value of type i8",
    'llvm.inline_asm "foo $0, $1;", "=r,m" %tid : (i32) -> i32': "no rule for the constraint m",
}


@pytest.mark.parametrize("op", CASES)
def test_named(op: str) -> None:
    found = spelled(kernel(f"%h = arith.truncf %a : f32 to f16\n    %x_ = {op}", ["f32"], []))
    assert found.ptx == ""
    (line,) = found.incomplete
    assert CASES[op] in line
    assert line.startswith("-:9:")


NO_RESULT = {
    "nvvm.barrier id = %tid": "no rule for a barrier of all threads other than barrier 0",
    "nvvm.fence.sc.cluster": "nvvm.fence.sc.cluster: no rule at thread level",
}


@pytest.mark.parametrize("op", NO_RESULT)
def test_named_without_result(op: str) -> None:
    found = spelled(kernel(op, [], []))
    assert len(found.incomplete) == 1
    assert NO_RESULT[op] in found.incomplete[0]


SPELLED = {
    TMEM + MMA.replace("GROUP", "cta_1").replace("MORE", ", collectorOp = #nvvm.tcgen05_mma_collectorop<fill>"): "collector::a::fill",
    TMEM + MMA.replace("GROUP", "cta_1").replace("f16", "tf32").replace("MORE", ""): "kind::tf32",
    TMEM + MMA.replace("GROUP", "cta_2").replace("MORE", ""): "tcgen05.mma.cta_group::2.kind::f16",
    TMEM + "nvvm.tcgen05.cp %t, %d {shape = #nvvm.tcgen05_cp_shape<shape_128x128b>}": "cp.cta_group::1.128x128b",
    SMEM + "nvvm.tcgen05.alloc %s, %tid {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<3>, i32": "tcgen05.alloc.cta_group::2",
    "nvvm.cluster.arrive {aligned}": "barrier.cluster.arrive.aligned",
}  # fmt: skip


@pytest.mark.parametrize("op", SPELLED)
def test_their_twins_are_spelled(op: str) -> None:
    found = spelled(kernel(op, [], []))
    assert found.incomplete == () and SPELLED[op] in found.ptx


def test_all_unknown_ops_are_listed() -> None:
    found = spelled(kernel("%u = math.exp %a : f32\n    %v = math.log %u : f32", ["f32"], []))
    assert [line.split(": ", 1)[1] for line in found.incomplete] == [
        "math.exp: no rule at thread level",
        "math.log: no rule at thread level",
    ]


def test_an_incomplete_kernel_is_not_executed() -> None:
    with ir.Context() as context, ir.Location.unknown():
        tc.load(context)
        module = ir.Module.parse(kernel("%u = math.exp %a : f32", ["f32"], []))
        outcome = thread.run(module, "f", [], [])
    assert outcome.outputs == [] and len(outcome.incomplete) == 1


def test_another_name_is_refused() -> None:
    with ir.Context() as context, ir.Location.unknown():
        tc.load(context)
        with pytest.raises(InputError, match=r"expected a gpu.module with the kernel @g, got none"):
            spell(ir.Module.parse(kernel("", [], [])), "g")
