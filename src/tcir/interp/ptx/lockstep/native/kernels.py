"""LLVM IR of the compiled replay: all kernels, and the loop that executes the steps of a trace."""

from __future__ import annotations

from tcir.interp.ptx.kernels.template import PREFIX
from tcir.interp.ptx.lockstep.native import movement

WIDTH = 15
"""Numbers per step: the kernel; for each of d, a, b and c the address, the bytes from one CTA to
the next, and the bytes by which the address advances with the CTAs; the immediate; padding."""

_RUN = f"""
define void @{PREFIX}run(ptr %code, i64 %steps, i64 %first, i64 %last, i64 %together) {{
entry:
  br label %tile
tile:
  %t = phi i64 [%first, %entry], [%t1, %tiled]
  %rest = sub i64 %last, %t
  %few = icmp slt i64 %rest, %together
  %n = select i1 %few, i64 %rest, i64 %together
  br label %step
step:
  %s = phi i64 [0, %tile], [%s1, %step]
  %o = mul i64 %s, {8 * WIDTH}
  %row = getelementptr i8, ptr %code, i64 %o
  %fn = load ptr, ptr %row, align 8
{
    "".join(
        f'''  %q{n} = getelementptr i64, ptr %row, i64 {1 + 3 * n}
  %p{n} = load i64, ptr %q{n}, align 8
  %r{n} = getelementptr i64, ptr %row, i64 {2 + 3 * n}
  %w{n} = load i64, ptr %r{n}, align 8
  %u{n} = getelementptr i64, ptr %row, i64 {3 + 3 * n}
  %m{n} = load i64, ptr %u{n}, align 8
  %k{n} = mul i64 %t, %m{n}
  %v{n} = add i64 %p{n}, %k{n}
  %x{n} = inttoptr i64 %v{n} to ptr
'''
        for n in range(4)
    )
}  %qi = getelementptr i64, ptr %row, i64 13
  %imm = load i64, ptr %qi, align 8
  call void %fn(ptr %x0, i64 %w0, ptr %x1, i64 %w1, ptr %x2, i64 %w2, ptr %x3, i64 %w3, i64 %imm,
                i64 %n)
  %s1 = add i64 %s, 1
  %more = icmp slt i64 %s1, %steps
  br i1 %more, label %step, label %tiled
tiled:
  %t1 = add i64 %t, %together
  %on = icmp slt i64 %t1, %last
  br i1 %on, label %tile, label %out
out:
  ret void
}}
"""

TEXT = "declare i32 @llvm.ctpop.i32(i32)\n" + "".join(movement.TEXTS) + _RUN
"""One module of LLVM IR."""
