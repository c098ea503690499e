"""Device functions: parameters, results, labels and local arrays of their own, nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import run_ptx

from .conftest import HEADER

FUNCTIONS = """
.func (.param .b32 func_retval0) collatz(.param .b32 collatz_param_0)
{
 .reg .pred %p<3>; .reg .b32 %r<6>;
 ld.param.b32 %r1, [collatz_param_0]; mov.b32 %r2, 0;
LOOP:
 setp.le.u32 %p1, %r1, 1; @%p1 bra DONE;
 and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 0;
 @%p2 bra EVEN;
 mad.lo.u32 %r1, %r1, 3, 1; bra.uni NEXT;
EVEN: shr.u32 %r1, %r1, 1;
NEXT: add.u32 %r2, %r2, 1; bra.uni LOOP;
DONE: st.param.b32 [func_retval0+0], %r2; ret;
}
.func (.param .b32 func_retval0) twice(.param .b32 twice_param_0, .param .b32 twice_param_1)
{
 .reg .b32 %r<6>; .local .align 4 .b8 stack[8];
 ld.param.b32 %r1, [twice_param_0]; ld.param.b32 %r2, [twice_param_1];
 st.local.b32 [stack+4], %r2;
 { .param .b32 param0; st.param.b32 [param0+0], %r1; .param .b32 retval0;
   call.uni (retval0), collatz, (param0); ld.param.b32 %r3, [retval0+0]; }
 ld.local.b32 %r4, [stack+4];
 { .param .b32 param0; st.param.b32 [param0+0], %r4; .param .b32 retval0;
   call.uni (retval0), collatz, (param0); ld.param.b32 %r5, [retval0+0]; }
 mad.lo.u32 %r5, %r3, 1000, %r5;
 st.param.b32 [func_retval0+0], %r5; ret;
}
.func nothing() { ret; }
"""
KERNEL = """
.visible .entry k(.param .u64 y)
{
 .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<2>;
 ld.param.b64 %rd1, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
 add.u32 %r2, %r1, 5;
 { .param .b32 param0; .param .b32 param1; .param .b32 retval0;
   st.param.b32 [param0+0], %r1; st.param.b32 [param1+0], %r2;
   call.uni (retval0), twice, (param0, param1); ld.param.b32 %r3, [retval0+0]; }
 call.uni nothing;
DONE: st.global.b32 [%rd1], %r3; ret;
}
"""


def steps(n: int) -> int:
    count = 0
    while n > 1:
        n, count = (3 * n + 1 if n & 1 else n // 2), count + 1
    return count


@pytest.mark.parametrize("block", [32, 50])
def test_nested_calls_in_divergent_threads(block: int) -> None:
    y = np.zeros(block, np.uint32)
    report = run_ptx(HEADER + FUNCTIONS + KERNEL, grid=1, block=block, args=[y])
    assert report.ok and not report.findings, report
    assert y.tolist() == [1000 * steps(n) + steps(n + 5) for n in range(block)]


def test_legal_ptx(assemble: Any) -> None:
    assemble(HEADER + FUNCTIONS + KERNEL)


def test_what_cannot_be_copied_is_named() -> None:
    text = FUNCTIONS.replace(".func nothing() { ret; }", ".extern .func nothing();")
    report = run_ptx(HEADER + text + KERNEL, grid=1, block=32, args=[np.zeros(32, "u4")])
    assert [i.instruction for i in report.incomplete] == ["call.uni"]


def test_module_is_left_alone() -> None:
    """The parsed module is kept between launches."""
    for _ in range(2):
        y = np.zeros(32, np.uint32)
        assert run_ptx(HEADER + FUNCTIONS + KERNEL, grid=1, block=32, args=[y]).ok
        assert y[27] == 1000 * 111 + steps(32)
