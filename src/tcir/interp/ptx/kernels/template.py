"""Form of a compiled kernel as LLVM IR: one computation in the 32 lanes of a warp, for `n` CTAs.

All kernels have one signature, so that one loop can call them by their addresses. The parameters
are a destination `d`, sources `a`, `b` and `c`, each with its stride in bytes between CTAs, and a
number `imm`. Integers and floats are vectors of 32 elements; predicates are bytes with the value 0
or 1.
"""

from __future__ import annotations

from tcir.machine.jit import External

PREFIX = "replay_"
"""Prefix of the kernels' names, unique in the process."""

_HEAD = """
define void @{prefix}{name}(ptr %d0, i64 %sd, ptr %a0, i64 %sa, ptr %b0, i64 %sb, ptr %c0, i64 %sc,
                    i64 %imm, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [0, %entry], [%next, %latch]
  %od = mul i64 %i, %sd
  %d = getelementptr i8, ptr %d0, i64 %od
  %oa = mul i64 %i, %sa
  %a = getelementptr i8, ptr %a0, i64 %oa
  %ob = mul i64 %i, %sb
  %b = getelementptr i8, ptr %b0, i64 %ob
  %oc = mul i64 %i, %sc
  %c = getelementptr i8, ptr %c0, i64 %oc
{body}
  br label %latch
latch:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}}
"""

_LANE_HEAD = """  br label %lanes
lanes:
  %l = phi i64 [0, %body], [%l1, %on]
"""
_LANE_TAIL = """  br label %on
on:
  %l1 = add i64 %l, 1
  %again = icmp ult i64 %l1, 32
  br i1 %again, label %lanes, label %done
done:"""


def kernel(name: str, body: str) -> str:
    return _HEAD.format(prefix=PREFIX, name=name, body=body)


def vector(name: str, out: str, sources: tuple[str, ...], steps: str) -> str:
    """Returns the LLVM IR of a kernel whose `steps` compute the vector %r from the vectors %x, %y
    and %z. out, sources: the element types of %r and of the other vectors
    """
    loads = "".join(
        f"  %{value} = load <32 x {kind}>, ptr %{place}, align 1\n"
        for value, place, kind in zip("xyz", "abc", sources, strict=False)
    )
    return kernel(name, f"{loads}{steps}\n  store <32 x {out}> %r, ptr %d, align 1")


def lanes(name: str, steps: str) -> str:
    """Returns the LLVM IR of a kernel whose `steps` compute one lane, whose number is %l."""
    return kernel(name, _LANE_HEAD + steps + _LANE_TAIL)


call_kernel = External(
    "call_kernel",
    5,
    """
define void @call_kernel(i64 %f, i64 %d, i64 %a, i64 %b, i64 %c) alwaysinline {
  %kernel = inttoptr i64 %f to ptr
  %pd = inttoptr i64 %d to ptr
  %pa = inttoptr i64 %a to ptr
  %pb = inttoptr i64 %b to ptr
  %pc = inttoptr i64 %c to ptr
  call void %kernel(ptr %pd, i64 0, ptr %pa, i64 0, ptr %pb, i64 0, ptr %pc, i64 0, i64 0, i64 1)
  ret void
}
""",
)
"""Calls the kernel at an address for one CTA: destination and sources are also addresses."""
