"""Every form of a tcgen05 instruction that assembles for sm_100a runs, or is refused by name.

Each kernel holds all forms of one instruction, kind or shape; ptxas says that they assemble. What a
form computes is tested elsewhere: here all operands are one number, so all of D has to be.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from .tcgen05_kernel import collective, issued, launch

UNSCALED = {"f16": (1, 0), "tf32": (1, 2), "f8f6f4": (1, 0), "i8": (2, 0)}
"""Kind -> codes of D's type and of A's and B's."""
VECTORS = {
    "mxf8f6f4": ("", ".scale_vec::1X", ".block32"),
    "mxf4": ("", ".scale_vec::2X", ".block32"),
    "mxf4nvf4": (".scale_vec::2X", ".scale_vec::4X", ".block16", ".block32"),
}
"""Kind -> how its scales may be written."""
USES = ("fill", "use", "lastuse", "discard")
A_FROM = ("%a0", "[%t2]")


def unscaled(kind: str, sparse: bool, m: int, n: int = 64) -> int:
    d, element = UNSCALED[kind]
    bits = d << 4 | element << 7 | element << 10 | n // 8 << 17 | m // 16 << 24
    return bits | (4 if sparse else 0)


def scaled(kind: str, sparse: bool, m: int, n: int = 64) -> int:
    element = 0 if kind == "mxf8f6f4" else 1
    bits = element << 7 | element << 10 | n // 8 << 17 | 1 << 23 | m // 128 << 27
    return bits | (4 if sparse else 0)


def mma(form: str, a: str, idesc: int, rest: str, sparse: bool) -> str:
    metadata = "[%t3], " if sparse else ""
    return f" mov.b32 %i0, {idesc};\n tcgen05.mma{form} [%t0], {a}, %a0, {metadata}%i0, {rest};"


def runs(text: str, group: int, assemble: Any) -> np.ndarray:
    report, out = launch(text, group)
    assert report.ok and not report.findings, str(report)
    assert assemble(text)
    return out


@pytest.mark.parametrize(("kind", "group"), list(product(UNSCALED, (1, 2))))
def test_mma(kind: str, group: int, assemble: Any) -> None:
    """A from both memories, dense and sparse, lane mask, scale-input-d, .ashift, collectors."""
    mask = "{" + ", ".join(["%w7"] * 4 * group) + "}, "
    lines = [" mov.b32 %w7, 0;"]
    scales = ("", ", 3") if kind in ("f16", "tf32") else ("",)
    for sparse, a, lanes, scale in product((False, True), A_FROM, ("", mask), scales):
        shifts = ("", ".ashift") if a == "[%t2]" else ("",)
        for shift in shifts:
            uses = USES[2:] if shift else USES
            for use in ("", *(f".collector::a::{u}" for u in uses)):
                form = f"{'.sp' if sparse else ''}.cta_group::{group}.kind::{kind}{shift}{use}"
                idesc = unscaled(kind, sparse, 128 * group)
                if shift and use.endswith("lastuse"):  # it needs a fill, which .ashift cannot do
                    full = form.replace(shift + use, ".collector::a::fill")
                    lines.append(mma(full, a, idesc, f"{lanes}%p4{scale}", sparse))
                lines.append(mma(form, a, idesc, f"{lanes}%p4{scale}", sparse))
    out = runs(issued("\n".join(lines), group), group, assemble)
    assert (out == out[0, 0]).all() and out[0, 0] != 0x44444444


@pytest.mark.parametrize(("kind", "group"), list(product(VECTORS, (1, 2))))
def test_block_scale(kind: str, group: int, assemble: Any) -> None:
    lines = []
    for sparse, a, vector in product((False, True), A_FROM, VECTORS[kind]):
        for use in ("", *(f".collector::a::{u}" for u in USES)):
            form = f".cta_group::{group}.kind::{kind}.block_scale{vector}{use}"
            idesc = scaled(kind, sparse, 128 * group)
            rest = "[%t4], [%t5], %p4"
            lines.append(mma((".sp" if sparse else "") + form, a, idesc, rest, sparse))
    out = runs(issued(" setp.ne.u32 %p4, %w0, %w0;\n" + "\n".join(lines), group), group, assemble)
    assert (out == out[0, 0]).all() and out[0, 0] != 0x44444444


@pytest.mark.parametrize(
    ("kind", "m"),
    list(product(UNSCALED, (32, 64, 128))),
)
def test_weight_stationary(kind: str, m: int, assemble: Any) -> None:
    """Dense and sparse, each buffer for B, with and without a mask of zero columns."""
    lines = []
    buffers = [f".collector::b{b}::{u}" for b, u in product(range(4), USES)] if m == 32 else []
    for sparse, a, mask in product((False, True), A_FROM, ("", ", %a1")):
        for use in ("", *buffers):
            name = "tcgen05.mma.ws.sp" if sparse else "tcgen05.mma.ws"
            form = name.removeprefix("tcgen05.mma") + f".cta_group::1.kind::{kind}{use}"
            lines.append(mma(form, a, unscaled(kind, sparse, m), f"%p4{mask}", sparse))
    out = runs(issued("\n".join(lines)), 1, assemble)
    assert (out == out[0, 0]).all() and out[0, 0] != 0x44444444


@pytest.mark.parametrize("order", ["kind::f16.cta_group::1", "cta_group::1.kind::f16"])
def test_order_of_modifiers_and_operands(order: str, assemble: Any) -> None:
    """Modifiers in either order; the predicate immediate or negated; an offset; a guard."""
    idesc = unscaled("f16", False, 128)
    rest = ["%p4", "!%p4", "1", "0"]
    lines = [mma(f".{order}", a, idesc, r, False) for a in A_FROM for r in rest]
    lines.append(lines[0].replace("[%t0]", "[%t0+128]"))
    lines.append(lines[0].replace(" tcgen05.mma", " @%p4 tcgen05.mma"))
    scale = mma(".cta_group::1.kind::mxf4nvf4.block_scale.collector::a::fill.block16", "%a0",
                scaled("mxf4nvf4", False, 128), "[%t4], [%t5], %p4", False)  # fmt: skip
    runs(issued("\n".join([*lines, scale])), 1, assemble)


@pytest.mark.parametrize("group", [1, 2])
def test_cp_and_shift(group: int, assemble: Any) -> None:
    shapes = ("128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23",
              "32x128b.warpx4", "warpx4.32x128b")  # fmt: skip
    formats = ("", ".b8x16.b4x16_p64", ".b8x16.b6x16_p32")
    head = f"tcgen05.cp.cta_group::{group}"
    forms = [f"{head}.{s}{f} [AT], %a0;" for s, f in product(shapes, formats)]
    forms += [
        f"tcgen05.shift.cta_group::{group}.down [AT];",
        f"tcgen05.shift.down.cta_group::{group} [AT];",
    ]
    # Of these only shift -> cp.4x256b is in order: each has columns of its own.
    lines = [" " + form.replace("AT", f"%t0+{8 + 8 * n}") for n, form in enumerate(forms)]
    out = runs(issued("\n".join(lines), group), group, assemble)
    assert (out == 0x44444444).all()


LARGEST = {"32x32b": 128, "16x64b": 128, "16x32bx2": 128, "16x128b": 64, "16x256b": 32}
REGISTERS = {"16x128b": 2, "16x256b": 4}


@pytest.mark.parametrize(
    ("shape", "packed"),
    list(product(LARGEST, (False, True))),
)
def test_ld_and_st(shape: str, packed: bool, assemble: Any) -> None:
    """Every shape and number: what was stored comes back."""
    lines = []
    counts = [1 << e for e in range(8) if 1 << e <= LARGEST[shape]]
    for count in counts:
        registers = count * REGISTERS.get(shape, 1)
        split = f", {2 * count if packed else count}" if shape == "16x32bx2" else ""
        data = "{" + ", ".join(f"%d{n}" for n in range(registers)) + "}"
        lines.append(
            f" tcgen05.st.sync.aligned.{shape}.x{count}{'.unpack::16b' if packed else ''}.b32 "
            f"[%t1]{split}, {{{', '.join(['%f'] * registers)}}};\n"
            " tcgen05.wait::st.sync.aligned;\n"
            f" tcgen05.ld.sync.aligned.{shape}.x{count}{'.pack::16b' if packed else ''}.b32 "
            f"{data}, [%t1]{split};\n tcgen05.wait::ld.sync.aligned;\n"
            + "".join(f" setp.ne.u32 %p6, %d{n}, %f; @%p6 trap;\n" for n in range(registers))
        )
    text = collective("\n".join(lines))
    report, _ = launch(text)
    assert report.ok and not report.findings, str(report)
    assert assemble(text)


def test_commit(assemble: Any) -> None:
    body = """
 mov.u64 %a2, done; cvta.shared.u64 %a2, %a2; mov.u16 %h1, 1;
 mbarrier.init.shared::cta.b64 [%m0+8], 4;
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%m0+8];
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%a2+8];
 tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%a2+8], %h1;
"""
    waits = """WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%m0], 0; @!%p5 bra WAIT;
 @%p3 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%a2+8];
AGAIN: @%p3 mbarrier.try_wait.parity.shared::cta.b64 %p5, [%m0+8], 0; @!%p5 bra AGAIN;
"""
    text = issued(body).replace(".b64 done;", ".b64 done[2];")
    line = next(x for x in text.splitlines(keepends=True) if x.startswith("WAIT:"))
    runs(text.replace(line, waits), 1, assemble)


@pytest.mark.parametrize("group", [1, 2])
def test_alloc_and_dealloc(group: int, assemble: Any) -> None:
    """Columns by immediate and by register, the address written to both kinds of address."""
    alloc = f"tcgen05.alloc.cta_group::{group}.sync.aligned"
    dealloc = f"tcgen05.dealloc.cta_group::{group}.sync.aligned.b32"
    first = f"{alloc}.shared::cta.b32 [%m1], 512;"
    more = f"""mov.u64 %a2, more; cvta.shared.u64 %a2, %a2; mov.u32 %m2, more; mov.b32 %i1, 32;
 {alloc}.b32 [%a2], 512;
 ld.shared.b32 %w6, [%m2]; {dealloc} %w6, 512;
 {alloc}.shared::cta.b32 [%m2+4], 256; {alloc}.shared::cta.b32 [%m2+8], %i1;
 ld.shared.b32 %w6, [%m2+4]; {dealloc} %w6, 256; ld.shared.b32 %w6, [%m2+8]; {dealloc} %w6, %i1;
 {first.replace("512", "32")}"""
    text = issued("", group).replace(first, more).replace(".b32 base;", ".b32 base; REST")
    text = text.replace("REST", ".shared .align 4 .b32 more[4];")
    start = text.index(" shl.b32 %t1,")
    end = text.index(" tcgen05.fence::before_thread_sync;", text.index("st.global"))
    text = text[:start] + text[end:].replace("%t0, 512", "%t0, 32")
    for seed in (None, 1, 2):
        report, _ = launch(text, group, order_seed=seed)
        assert report.ok and not report.findings, str(report)
    assert assemble(text)


def test_refused_by_name() -> None:
    text = issued(" tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%d0, %d1}, %d2, [%t1];")
    report, _ = launch(text)
    words = " ".join(map(str, [*report.errors, *(i.why for i in report.incomplete)]))
    assert not report.ok and "not an instruction of sm_100a" in words


def test_scale_input_d_of_integers(assemble: Any) -> None:
    """PTX ISA has it for f16 and tf32; ptxas takes it and makes the instruction without it."""
    results = []
    for scale in ("", ", 0", ", 3"):
        idesc = unscaled("i8", False, 128)
        text = issued(mma(".cta_group::1.kind::i8", "%a0", idesc, f"%p4{scale}", False))
        report, out = launch(text)
        found = [(f.severity, f.code) for f in report.findings]
        assert report.ok and found == [("warning", "ignored-operand")] * scale.endswith("3")
        assemble(text)
        results.append(out)
    assert (results[0] == results[1]).all() and (results[0] == results[2]).all()


def test_a_descriptor_bit_without_meaning() -> None:
    """Bit 12 of the fp4 kinds: CuTe DSL sets it. No other result, but a warning."""
    results = []
    for bit in (0, 1):
        idesc = scaled("mxf4", False, 128) | bit << 12
        line = mma(".cta_group::1.kind::mxf4.block_scale", "%a0", idesc, "[%t4], [%t5], 0", False)
        report, out = launch(issued(line))
        assert report.ok
        assert [(f.severity, f.code) for f in report.findings] == [("warning", "ignored-bit")] * bit
        results.append(out)
    assert (results[0] == results[1]).all() and (results[0] != 0x44444444).all()
