# ruff: noqa: E501 (lines of IR)
"""Control flow, memory, vectors and inline assembly of the naive spelling."""

from __future__ import annotations

import numpy as np
import pytest
from thread_kernels import THREADS, floats, integers, kernel, run, through_llvm

LANES = np.arange(THREADS, dtype=np.int32)


def test_for_with_carried_values_that_swap() -> None:
    """Fibonacci numbers; every lane makes another number of steps."""
    body = """%lo = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %c31 = arith.constant 31 : i32
    %n = arith.andi %tid, %c31 : i32
    %x, %y = scf.for %i = %lo to %n step %one iter_args(%u = %lo, %v = %one) -> (i32, i32) : i32 {
      %s = arith.addi %u, %v : i32
      scf.yield %v, %s : i32, i32
    }"""
    fibonacci = [0, 1]
    while len(fibonacci) < 40:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    x, y = run(kernel(body, [], ["i32", "i32"]), [], [np.int32, np.int32])
    assert list(x) == [fibonacci[n % 32] for n in range(THREADS)]
    assert list(y) == [fibonacci[n % 32 + 1] for n in range(THREADS)]


def test_loop_that_exchanges_its_values() -> None:
    body = """%lo = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %x, %y = scf.for %i = %lo to %tid step %one iter_args(%u = %a, %v = %b) -> (i32, i32) : i32 {
      scf.yield %v, %u : i32, i32
    }"""
    a, b = integers("i32", 1), integers("i32", 2)
    x, y = run(kernel(body, ["i32", "i32"], ["i32", "i32"]), [a, b], [np.int32, np.int32])
    np.testing.assert_array_equal(x, np.where(LANES % 2, b, a))
    np.testing.assert_array_equal(y, np.where(LANES % 2, a, b))


def test_while_with_results() -> None:
    """Collatz steps."""
    body = """%c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %start = arith.addi %tid, %c1 : i32
    %x, %y = scf.while (%v = %start, %n = %c0) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi ne, %v, %c1 : i32
      scf.condition(%more) %v, %n : i32, i32
    } do {
    ^bb0(%v: i32, %n: i32):
      %odd = arith.andi %v, %c1 : i32
      %is = arith.cmpi eq, %odd, %c1 : i32
      %next = scf.if %is -> (i32) {
        %t = arith.muli %v, %c3 : i32
        %u = arith.addi %t, %c1 : i32
        scf.yield %u : i32
      } else {
        %h = arith.divui %v, %c2 : i32
        scf.yield %h : i32
      }
      %m = arith.addi %n, %c1 : i32
      scf.yield %next, %m : i32, i32
    }"""

    def steps(value: int) -> int:
        count = 0
        while value != 1:
            value, count = (3 * value + 1 if value % 2 else value // 2), count + 1
        return count

    x, y = run(kernel(body, [], ["i32", "i32"]), [], [np.int32, np.int32])
    assert list(x) == [1] * THREADS
    assert list(y) == [steps(n + 1) for n in range(THREADS)]


@pytest.mark.parametrize("dialect", ["cf", "llvm"])
def test_blocks_whose_order_is_not_that_of_their_definitions(dialect: str) -> None:
    """A loop whose header exchanges its arguments, and blocks that stand before their dominators."""
    branch = f"{dialect}.br"
    conditional = f"{dialect}.cond_br"
    blocks = f"""%c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    {branch} ^head(%a, %b, %c0 : i32, i32, i32)
  ^exit(%r: i32, %s: i32):
    {branch} ^last
  ^body:
    %k = arith.addi %j, %c1 : i32
    {branch} ^head(%v, %u, %k : i32, i32, i32)
  ^head(%u: i32, %v: i32, %j: i32):
    %more = arith.cmpi ult, %j, %tid : i32
    {conditional} %more, ^body, ^exit(%u, %v : i32, i32)
  ^last:
    %x = arith.addi %r, %c0 : i32
    %y = arith.addi %s, %c0 : i32"""
    a, b = integers("i32", 3), integers("i32", 4)
    text = kernel("", ["i32", "i32"], ["i32", "i32"], blocks=blocks)
    x, y = run(text, [a, b], [np.int32, np.int32])
    np.testing.assert_array_equal(x, np.where(LANES % 2, b, a))
    np.testing.assert_array_equal(y, np.where(LANES % 2, a, b))


def test_vectors_of_every_width_in_memory() -> None:
    """Loads and stores of 1, 2, 4 and 8 words, the last taken apart."""
    for count, alignment in ((1, 4), (2, 8), (4, 16), (4, 4), (8, 16)):
        body = f"""%c = llvm.mlir.constant({count} : i32) : i32
    %first = llvm.mul %tid, %c : i32
    %from = llvm.getelementptr %p0[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %to = llvm.getelementptr %p1[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %v = llvm.load %from {{alignment = {alignment} : i64}} : !llvm.ptr<1> -> vector<{count}xi32>
    llvm.store %v, %to {{alignment = {alignment} : i64}} : vector<{count}xi32>, !llvm.ptr<1>"""
        text = kernel(body, [], [])
        text = text.replace("@f()", "@f(%p0: !llvm.ptr<1>, %p1: !llvm.ptr<1>)").replace(
            "tc.params = []",
            'tc.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}]',
        )
        data = np.arange(1, THREADS * count + 1, dtype=np.int32)
        found = _copy(text, data)
        np.testing.assert_array_equal(found, data)


def _copy(text: str, data: np.ndarray) -> np.ndarray:
    from tcir._mlir import ir
    from tcir.dialect import tc
    from tcir.interp import OutputSpec, thread

    with ir.Context() as context, ir.Location.unknown():
        tc.load(context)
        module = ir.Module.parse(text)
        outcome = thread.run(module, "f", [data], [OutputSpec(data.shape, data.dtype)])
    assert not outcome.incomplete and not outcome.findings
    return outcome.outputs[0]


def test_shared_memory_and_the_cta_barrier() -> None:
    """Each thread reads what the thread of the other warp wrote."""
    body = """%base = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %mine = llvm.getelementptr %base[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %a, %mine : i32, !llvm.ptr<3>
    nvvm.barrier
    %c32 = arith.constant 32 : i32
    %other = arith.xori %tid, %c32 : i32
    %addr = llvm.ptrtoint %base : !llvm.ptr<3> to i32
    %c4 = arith.constant 4 : i32
    %off = arith.muli %other, %c4 : i32
    %at = arith.addi %addr, %off : i32
    %theirs = llvm.inttoptr %at : i32 to !llvm.ptr<3>
    %x = llvm.load %theirs : !llvm.ptr<3> -> i32"""
    a = integers("i32", 5)
    (x,) = run(kernel(body, ["i32"], ["i32"], smem=4 * THREADS), [a], [np.int32])
    np.testing.assert_array_equal(x, a[LANES ^ 32])


def test_vectors_are_taken_apart_and_put_together() -> None:
    body = """%c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %none = llvm.mlir.poison : vector<2xf32>
    %v0 = llvm.insertelement %a, %none[%c0 : i32] : vector<2xf32>
    %v1 = llvm.insertelement %b, %v0[%c1 : i32] : vector<2xf32>
    %h = arith.truncf %v1 : vector<2xf32> to vector<2xf16>
    %w = llvm.shufflevector %h, %h [1, 2] : vector<2xf16>
    %x = llvm.bitcast %w : vector<2xf16> to i32
    %back = llvm.bitcast %x : i32 to vector<2xf16>
    %y = llvm.extractelement %back[%c1 : i32] : vector<2xf16>"""
    a, b = floats("f32", 6), floats("f32", 7)
    text = kernel(body, ["f32", "f32"], ["i32", "f16"])
    x, y = run(text, [a, b], [np.int32, np.float16])
    low, high = b.astype(np.float16).view(np.uint16), a.astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(x.view(np.uint32), low | high.astype(np.uint32) << 16)
    np.testing.assert_array_equal(y, a.astype(np.float16))


def test_structs_and_inline_assembly() -> None:
    """Outputs are numbered before inputs; a tied pair is one register, named or not."""
    body = """%s = llvm.inline_asm has_side_effects "add.s32 $0, $2, $3; sub.s32 $1, $2, $3;", "=r,=r,r,r" %a, %b : (i32, i32) -> !llvm.struct<(i32, i32)>
    %sum = llvm.extractvalue %s[0] : !llvm.struct<(i32, i32)>
    %difference = llvm.extractvalue %s[1] : !llvm.struct<(i32, i32)>
    %t = llvm.inline_asm has_side_effects "bar.warp.sync 0xffffffff;", "=r,=r,0,1" %sum, %difference : (i32, i32) -> !llvm.struct<(i32, i32)>
    %x = llvm.extractvalue %t[0] : !llvm.struct<(i32, i32)>
    %d = llvm.extractvalue %t[1] : !llvm.struct<(i32, i32)>
    %z = llvm.inline_asm "{ .reg .b32 t; mov.b32 t, $1; neg.s32 $0, t; }", "=r,r" %d : (i32) -> i32
    %y = llvm.inline_asm "add.s32 $0, $1, 0;", "=r,0" %z : (i32) -> i32"""
    a, b = integers("i32", 8) >> 1, integers("i32", 9) >> 1
    text = kernel(body, ["i32", "i32"], ["i32", "i32"])
    for execute in (run, through_llvm):
        x, y = execute(text, [a, b], [np.int32, np.int32])
        np.testing.assert_array_equal(x, a + b)
        np.testing.assert_array_equal(y, b - a)


def test_inline_ptx() -> None:
    body = '%x = nvvm.inline_ptx "mul.lo.s32 {$w0}, {$r0}, {$r1};" ro(%a, %b : i32, i32) -> i32'
    a, b = integers("i32", 10), integers("i32", 11)
    (x,) = run(kernel(body, ["i32", "i32"], ["i32"]), [a, b], [np.int32])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(x, a * b)


def test_elect_picks_one_lane_of_each_warp() -> None:
    body = """%e = nvvm.elect.sync -> i1
    %x = arith.extui %e : i1 to i32"""
    (x,) = run(kernel(body, [], ["i32"]), [], [np.int32])
    assert list(x.reshape(-1, 32).sum(axis=1)) == [1] * (THREADS // 32)
