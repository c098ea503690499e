"""Probes of `wgmma.mma_async`: their forms, and the kernel of each as PTX for sm_90a.

All kernels are one: a warpgroup copies an image to shared memory, loads D (and A, and metadata),
executes one instruction, and stores D. Descriptors, images and registers are data of a case (a
CTA), so only what the instruction's text decides is a form. Needs numpy alone: probes run on
computers that have nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e5m2": 8, "e4m3": 8, "s8": 8, "u8": 8, "b1": 1}
SHARED = 32768
"""Bytes of an image at most."""
INTEGER_N = (8, 16, 24, 32, *range(48, 257, 16))
FP8 = tuple((a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2"))
INT8 = tuple((a, b) for a in ("s8", "u8") for b in ("s8", "u8"))


@dataclass(frozen=True)
class Form:
    """What the text of one instruction says. negate, transpose: of A and of B."""

    n: int
    d: str
    a: str
    b: str
    registers: bool = False
    negate: tuple[bool, bool] = (False, False)
    transpose: tuple[bool, bool] = (False, False)
    saturate: bool = False
    selector: int | None = None

    @property
    def k(self) -> int:
        """K of the instruction: 32 bytes, of a sparse A 64 with its zeros."""
        return 256 // BITS[self.a] * (1 if self.selector is None else 2)

    @property
    def stored(self) -> int:
        """Elements of a row of A that are not left out."""
        return self.k if self.selector is None else self.k // 2

    @property
    def chunk(self) -> int:
        """Elements of a row of A that share a code of metadata; 1 of a dense A."""
        return 1 if self.selector is None else 2 if self.a == "tf32" else 4

    @property
    def integer(self) -> bool:
        """Whether the sums are exact."""
        return self.d == "s32"

    @property
    def words(self) -> int:
        """Registers of D."""
        return self.n // 4 if self.d == "f16" else self.n // 2

    @property
    def name(self) -> str:
        """The kernel's name, for example ``n8_f32_f16_f16_rs``."""
        tail = "_rs" * self.registers + "_sat" * self.saturate
        if any(self.negate):
            tail += "_neg" + "a" * self.negate[0] + "b" * self.negate[1]
        if any(self.transpose):
            tail += "_mn" + "a" * self.transpose[0] + "b" * self.transpose[1]
        if self.selector is not None:
            tail += f"_sp{self.selector}"
        return f"n{self.n}_{self.d}_{self.a}_{self.b}{tail}"

    @property
    def instruction(self) -> str:
        """The opcode."""
        sparse = ".sp" * (self.selector is not None)
        tail = ".and.popc" * (self.a == "b1") + ".satfinite" * self.saturate
        return (
            f"wgmma.mma_async{sparse}.sync.aligned.m64n{self.n}k{self.k}"
            f".{self.d}.{self.a}.{self.b}{tail}"
        )

    @property
    def operands(self) -> str:
        """All of them, as the kernel names its registers."""
        parts = ["{" + ", ".join(f"%c{n}" for n in range(self.words)) + "}"]
        parts += ["{%a0, %a1, %a2, %a3}" if self.registers else "%da", "%db"]
        if self.selector is not None:
            parts += ["%m", str(self.selector)]
        parts.append("%p")
        if not self.integer:
            parts += ["-1" if minus else "1" for minus in self.negate]
        if BITS[self.a] == 16:
            majors = self.transpose[1:] if self.registers else self.transpose
            parts += [str(int(major)) for major in majors]
        return ", ".join(parts)


_ENTRY = """
.visible .entry {name}(.param .u64 pcase, .param .u64 pimage, .param .u64 pa, .param .u64 pm,
 .param .u64 pd, .param .u32 bytes)
{{
 .shared .align 1024 .b8 smem[{shared}];
 .reg .pred %p, %q; .reg .b32 %c<{words}>, %a<4>, %v<4>, %m, %r<10>; .reg .b64 %d<6>, %da, %db;
 mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, smem; ld.param.u32 %r3, [bytes];
 ld.param.u64 %d0, [pcase]; mad.wide.u32 %d0, %r1, 32, %d0;
 ld.global.u64 %da, [%d0]; ld.global.u64 %db, [%d0+8]; ld.global.u32 %r4, [%d0+16];
 ld.global.u32 %r5, [%d0+20];
 st.global.u32 [%d0+24], %r2;
 shr.u32 %r6, %r2, 4; cvt.u64.u32 %d1, %r6; add.u64 %da, %da, %d1; add.u64 %db, %db, %d1;
 ld.param.u64 %d1, [pimage]; mad.wide.u32 %d1, %r4, %r3, %d1;
 shl.b32 %r7, %r0, 4;
COPY:
 setp.ge.u32 %q, %r7, %r3; @%q bra COPIED;
 cvt.u64.u32 %d2, %r7; add.u64 %d2, %d1, %d2; ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%d2];
 add.u32 %r8, %r2, %r7; st.shared.v4.b32 [%r8], {{%v0, %v1, %v2, %v3}};
 add.u32 %r7, %r7, 2048; bra COPY;
COPIED:
 shl.b32 %r9, %r0, 2; cvt.u64.u32 %d3, %r9;
 ld.param.u64 %d4, [pd]; mad.wide.u32 %d4, %r1, {d_bytes}, %d4; add.u64 %d4, %d4, %d3;
{loads}
 setp.ne.u32 %p, %r5, 0;
 fence.proxy.async; bar.sync 0;
 wgmma.fence.sync.aligned;
 {instruction} {operands};
 wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 0;
{stores}
 ret;
}}
"""


def entry(form: Form) -> str:
    """PTX of the kernel of one form."""
    words = form.words
    loads = [f" ld.global.b32 %c{n}, [%d4+{512 * n}];" for n in range(words)]
    if form.registers:
        loads.append(" ld.param.u64 %d5, [pa]; mad.wide.u32 %d5, %r1, 2048, %d5;")
        loads.append(" add.u64 %d5, %d5, %d3;")
        loads += [f" ld.global.b32 %a{n}, [%d5+{512 * n}];" for n in range(4)]
    if form.selector is not None:
        loads.append(" ld.param.u64 %d5, [pm]; mad.wide.u32 %d5, %r1, 512, %d5;")
        loads.append(" add.u64 %d5, %d5, %d3; ld.global.b32 %m, [%d5];")
    return _ENTRY.format(
        name=form.name, shared=SHARED, words=words, d_bytes=512 * words, loads="\n".join(loads),
        instruction=form.instruction, operands=form.operands,
        stores="\n".join(f" st.global.b32 [%d4+{512 * n}], %c{n};" for n in range(words)),
    )  # fmt: skip


def _forms() -> tuple[Form, ...]:
    floats = [Form(8, "f32", "f16", "f16"), Form(8, "f16", "f16", "f16")]
    floats += [Form(8, "f32", name, name) for name in ("bf16", "tf32")]
    floats += [Form(8, d, a, b) for d in ("f32", "f16") for a, b in FP8]
    integers = [Form(8, "s32", a, b) for a, b in INT8] + [Form(8, "s32", "b1", "b1")]
    first = [*floats, *integers]
    found = list(first)
    found += [replace(form, registers=True) for form in first]
    found += [
        replace(form, n=n)
        for form in first
        for n in (24, 96, 256)
        if form.integer is False or n in INTEGER_N
    ]
    found += [Form(n, "f32", "f16", "f16") for n in range(16, 257, 8)]
    found += [Form(n, "s32", "s8", "s8") for n in INTEGER_N]
    found += [replace(form, saturate=True) for form in integers if form.a != "b1"]
    signs = ((True, False), (False, True), (True, True))
    for a in ("f16", "bf16", "tf32", "e4m3"):
        found += [Form(8, "f32", a, a, negate=sign) for sign in signs]
        found.append(Form(8, "f32", a, a, registers=True, negate=(True, False)))
    # Where an element of A, of B is read from: the other operand selects
    found += [
        Form(16, "f32", "f16", "f16"),
        Form(32, "s32", "u8", "u8"),
        Form(8, "f32", "tf32", "tf32"),
    ]
    for a in ("f16", "bf16"):
        found += [Form(n, "f32", a, a, transpose=sign) for sign in signs for n in (16, 128, 256)]
        found += [Form(128, "f32", a, a, registers=True, transpose=(False, True))]
    found += [Form(n, "f32", "f16", "f16") for n in (128,)]
    return tuple({form.name: form for form in found}.values())


def _sparse_forms() -> tuple[Form, ...]:
    plain = [Form(8, d, a, b, selector=0) for d in ("f32", "f16") for a, b in FP8]
    plain += [Form(8, "s32", a, b, selector=0) for a, b in INT8]
    wide = [Form(8, "f32", a, a, selector=s) for a in ("f16", "bf16", "tf32") for s in (0, 1)]
    wide += [Form(8, "f16", "f16", "f16", selector=s) for s in (0, 1)]
    first = plain + wide
    found = [*first, *(replace(form, registers=True) for form in first)]
    one_of_each = [f for f in first if f.a == f.b and f.selector == 0]
    found += [replace(form, n=n) for form in one_of_each for n in (16, 32, 96, 256)]
    found += [replace(form, saturate=True) for form in plain if form.integer]
    signs = ((True, False), (False, True), (True, True))
    for a in ("f16", "bf16", "tf32", "e4m3"):
        form = Form(8, "f32", a, a, selector=0)
        found += [replace(form, negate=sign) for sign in signs]
        found.append(replace(form, negate=(True, False), registers=True))
    for a in ("f16", "bf16"):
        form = Form(64, "f32", a, a, selector=0)
        found += [replace(form, n=n, transpose=sign) for sign in signs for n in (16, 64)]
        found.append(replace(form, transpose=(False, True), registers=True))
    return tuple({form.name: form for form in found}.values())


FORMS = {form.name: form for form in (*_forms(), *_sparse_forms())}


@cache
def ptx(names: tuple[str, ...] = tuple(FORMS)) -> str:
    """One module with a kernel for each form."""
    head = ".version 8.7\n.target sm_90a\n.address_size 64\n"
    return head + "".join(entry(FORMS[name]) for name in names)
