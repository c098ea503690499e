"""Compiled replay: the kernels compute what the rules of the instructions do, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir.interp.ptx.lockstep.launch as lockstep
from tcir.interp.ptx.lockstep.native.execution import Native
from tcir.run import run_ptx

from .conftest import HEADER
from .scalar import NUMPY_ONLY, REGISTERS, SCALAR, written

ENTRY = ".visible .entry k(.param .u64 x, .param .u64 y)\n{\n"
WORDS = np.array(
    [0, 1, 2, 31, 32, 33, 63, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBF800000,
     0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x00400000, 0x80000001,
     0x007FFFFF, 0x7F7FFFFF, 0x34000000, 0x3F7FFFFF, 0x00800000, 0x4B800001, 0xCB7FFFFF,
     0x12345678], np.uint32,
)  # fmt: skip
"""Small and extreme integers; as f32 zeros, infinities, NaNs, subnormals, neighbours of powers."""
COMPILED = [s for s in SCALAR if s not in NUMPY_ONLY and not s.startswith(("div.", "rem."))]
"""Divisions are left out: a CTA that divides by 0 leaves."""
CTAS = len(WORDS) ** 2 // 32 + 1


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Native]:
    """The traces that kernels replayed."""
    found: list[Native] = []
    run = Native.run

    def noted(self: Native, *arguments: Any) -> bool:
        done = run(self, *arguments)
        if done:
            found.append(self)
        return done

    monkeypatch.setattr(Native, "run", noted)
    return found


def _program() -> str:
    """Every instruction that has a kernel, on words, pairs of them and predicates."""
    loads = [
        "ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; mov.u32 %r1, %ctaid.x;",
        "mov.u32 %r2, %tid.x;",
        "mad.lo.u32 %r3, %r1, 32, %r2; mul.wide.u32 %rd3, %r3, 12; add.u64 %rd4, %rd1, %rd3;",
        f"mul.wide.u32 %rd5, %r3, {8 * len(COMPILED)}; add.u64 %rd6, %rd2, %rd5;",
        "ld.global.b32 %a0, [%rd4]; ld.global.b32 %a1, [%rd4+4]; ld.global.b32 %a2, [%rd4+8];",
        *(
            f"cvt.u64.u32 %q{n}, %a{n}; cvt.u64.u32 %rd7, %a{(n + 1) % 3}; shl.b64 %rd7, %rd7, 32; "
            f"or.b64 %q{n}, %q{n}, %rd7;"
            for n in range(3)
        ),
        *(f"cvt.u16.u32 %h{n}, %a{n};" for n in range(3)),
        "setp.lt.s32 %p0, %a0, %a1; setp.gt.u32 %p1, %a1, %a2; setp.ne.u32 %p2, %a2, 7;",
    ]
    found = []
    for number, spelling in enumerate(COMPILED):
        result, *sources = SCALAR[spelling].letters
        operands = [f"{REGISTERS[one]}{n}" for n, one in enumerate(sources)]
        at = f"[%rd6+{8 * number}]"
        if result == "p":
            found.append(f"{written(spelling, '%p4', *operands)} selp.b32 %r5, 5, 9, %p4;")
            found.append(f"st.global.b32 {at}, %r5;")
        else:
            register, width = {"h": ("%h4", 16), "w": ("%r5", 32), "q": ("%q4", 64)}[result]
            found.append(f"{written(spelling, register, *operands)}")
            found.append(f"st.global.b{width} {at}, {register};")
    registers = (
        ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<8>, %a<4>; .reg .b64 %rd<8>, %q<8>;"
    )
    body = "\n".join([*loads, *found])
    return f"{HEADER}{ENTRY}{registers}\n{body}\nret;\n}}\n"


def test_every_kernel_computes_what_the_rule_does(compiled: list[Native]) -> None:
    rng = np.random.default_rng(0)
    first, second = np.meshgrid(WORDS, WORDS)
    x = rng.integers(0, 1 << 32, (32 * CTAS, 3), dtype=np.uint32)
    x[: first.size, 0], x[: first.size, 1] = first.ravel(), second.ravel()
    x[: first.size, 2] = rng.choice(WORDS, first.size)
    found = []
    for together in (False, True):
        y = np.zeros((32 * CTAS, len(COMPILED)), np.uint64)
        report = run_ptx(_program(), grid=CTAS, block=32, args=(x, y), lockstep=together)
        assert report.ok, str(report)
        found.append(y)
    assert report.lockstep == CTAS - 1 and compiled
    assert not any(one.lowered.out.asides for one in compiled), "a kernel is not used"
    for number, spelling in enumerate(COMPILED):
        np.testing.assert_array_equal(found[1][:, number], found[0][:, number], spelling)


def test_instructions_without_a_kernel_are_executed_between_them(compiled: list[Native]) -> None:
    body = (
        "ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; mov.u32 %r1, %ctaid.x;"
        "mov.u32 %r2, %tid.x;"
        "mad.lo.u32 %r3, %r1, 64, %r2; mul.wide.u32 %rd3, %r3, 2; add.u64 %rd4, %rd1, %rd3;"
        "mul.wide.u32 %rd3, %r3, 8; add.u64 %rd5, %rd2, %rd3; ld.global.u16 %r4, [%rd4];"
        "cvt.rn.f32.u32 %r5, %r4; ex2.approx.f32 %r6, %r5; brev.b32 %r7, %r6; popc.b32 %r8, %r7;"
        "shfl.sync.down.b32 %r9|%p1, %r8, 3, 31, -1; selp.b32 %r9, %r9, %r5, %p1;"
        "shfl.sync.idx.b32 %r10, %r9, %r8, 31, -1; st.shared.u8 [tile], 1; "
        "mov.u32 %r11, tile; mad.lo.u32 %r11, %r2, 4, %r11; st.shared.b32 [%r11], %r10; bar.sync 0;"
        "mov.u32 %r12, tile; xor.b32 %r13, %r2, 33; mad.lo.u32 %r12, %r13, 4, %r12;"
        "ld.shared.b32 %r14, [%r12]; st.global.v2.b32 [%rd5], {%r14, %r9};"
    )
    text = (
        f"{HEADER}{ENTRY}.reg .pred %p<3>;"
        f".reg .b32 %r<20>; .reg .b64 %rd<8>; .shared .align 16 .b8 tile[256];\n{body}\nret;\n}}\n"
    )
    x = np.random.default_rng(1).integers(0, 99, 64 * 50, dtype=np.uint16)
    found = []
    for together in (False, True):
        y = np.zeros((64 * 50, 2), np.uint32)
        report = run_ptx(text, grid=50, block=64, args=(x, y), lockstep=together, hazards="off")
        assert report.ok, str(report)
        found.append(y)
    assert report.lockstep == 49 and compiled and compiled[0].lowered.out.asides
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) > 99


def test_what_a_load_that_polls_does_is_left_to_numpy(compiled: list[Native]) -> None:
    """The same place again and again, with the same in it."""
    body = (
        "ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; mov.u32 %r1, %ctaid.x;"
        "mov.u32 %r2, %tid.x;"
        "mad.lo.u32 %r3, %r1, 32, %r2; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd4, %rd1, %rd3;"
        "add.u64 %rd5, %rd2, %rd3; mov.u32 %r4, 0; L: ld.global.b32 %r5, [%rd4];"
        "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 3; @%p1 bra L; ld.global.b32 %r6, [%rd4];"
        "st.global.b32 [%rd5], %r6;"
    )
    text = (
        f"{HEADER}{ENTRY}.reg .pred %p<3>;.reg .b32 %r<20>; .reg .b64 %rd<8>;\n{body}\nret;\n}}\n"
    )
    x, y = np.arange(32 * 12, dtype=np.uint32), np.zeros(32 * 12, np.uint32)
    report = run_ptx(text, grid=12, block=32, args=(x, y))
    assert report.ok and report.lockstep == 11 and not compiled and lockstep.COMPILED
    np.testing.assert_array_equal(x, y)
