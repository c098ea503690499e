"""Warp matrix instructions beside the dense m16n8 ones (`mma_sync`): f64, int4, b1, m8n8, sparse.

An entry per form: every lane loads its operands' words, executes the instruction once and stores
its results. So the places of elements count, and the metadata's too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
WARPS = 32
HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "s32": 32, "f64": 64, "e4m3": 8, "e5m2": 8,
        "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}  # fmt: skip
_LAYOUT = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "f64": (11, 52),
           "e4m3": (4, 3), "e5m2": (5, 2)}  # fmt: skip
#: Positions of the two non-zeros of a chunk of four, and of the one of a chunk of two.
PAIRS, SINGLES = (0x4, 0x8, 0x9, 0xC, 0xD, 0xE), (0x4, 0xE)


@dataclass(frozen=True)
class Form:
    """`mma{.sp…}.sync.aligned.SHAPE.LAYOUT{modifiers}.d.a.b.c{.operation}`."""

    shape: tuple[int, int, int]
    types: tuple[str, str, str, str]
    layout: str = "row.col"
    modifier: str = ""
    operation: str = ""
    selector: int | None = None
    """Selector of a sparse form."""

    @property
    def name(self) -> str:
        """Name of the entry."""
        m, n, k = self.shape
        words = [f"m{m}n{n}k{k}", *self.types, self.layout, self.modifier, self.operation]
        if self.selector is not None:
            words.append(f"sp{self.selector}")
        return re.sub(r"\W+", "_", "_".join(w.strip(".") for w in words if w))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Registers of d, a, b, c."""
        m, n, k = self.shape
        d, a, b, c = self.types
        if (m, n, k) == (8, 8, 4) and a == "f16":  # four of them at once
            return (8 if d == "f32" else 4, 2, 2, 8 if c == "f32" else 4)
        held = k if self.selector is None else k // 2
        sizes = ((m * n, d), (m * held, a), (k * n, b), (m * n, c))
        d_, a_, b_, c_ = (max(1, x * BITS[t] // 32 // max(32, BITS[t])) for x, t in sizes)
        return d_, a_, b_, c_

    @property
    def instruction(self) -> str:
        """The instruction with operands %d0…, %a0…, %b0…, %c0…, and the metadata in %e0."""
        m, n, k = self.shape
        vectors = (
            "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"
            for letter, count in zip("dabc", self.counts, strict=True)
        )
        sparse = "" if self.selector is None else ".sp::ordered_metadata"
        tail = "" if self.selector is None else f", %e0, {self.selector}"
        return (
            f"mma{sparse}.sync.aligned.m{m}n{n}k{k}.{self.layout}{self.modifier}."
            f"{'.'.join(self.types)}{self.operation} {', '.join(vectors)}{tail};"
        )

    @property
    def entry(self) -> str:
        """PTX of the entry: pointers to a, b, c, e and d words, [warp][register][lane]."""
        parameters = ", ".join(f".param .u64 p{n}" for n in range(5))
        lines = [
            f".visible .entry {self.name}({parameters})",
            "{",
            ".reg .b32 %t<4>; .reg .b64 %q<4>; .reg .b32 %e<1>;",
            "mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x;",
        ]
        order = [("a", 1), ("b", 2), ("c", 3)]
        for letter, place in [*order, ("d", 0)]:
            size = 64 if self.types[place] == "f64" else 32
            lines.append(f".reg .b{size} %{letter}<{self.counts[place]}>;")
        for number, (letter, place) in enumerate([*order, ("e", -1), ("d", 0)]):
            count = 1 if place < 0 else self.counts[place]
            wide = place >= 0 and self.types[place] == "f64"
            size = 8 if wide else 4
            lines.append(f"ld.param.u64 %q0, [p{number}]; mul.lo.u32 %t2, %t1, {32 * count};")
            lines.append(f"add.u32 %t2, %t2, %t0; mad.wide.u32 %q1, %t2, {size}, %q0;")
            if letter == "d":
                lines.append(self.instruction)
            for i in range(count):
                at = f"[%q1+{32 * size * i}]"
                lines.append(
                    f"st.global.b{8 * size} {at}, %{letter}{i};"
                    if letter == "d"
                    else f"ld.global.b{8 * size} %{letter}{i}, {at};"
                )
        return "\n".join([*lines, "ret;", "}"])

    def inputs(self) -> list[Array]:
        """Words of a, b, c and e."""
        generator = np.random.default_rng(list(self.name.encode()))
        arrays = [_words(generator, self.types[place], self.counts[place]) for place in (1, 2, 3)]
        codes = SINGLES if self.types[1] == "tf32" else PAIRS
        nibbles = generator.choice(np.array(codes, np.uint32), (WARPS, 1, 32, 8))
        meta = (nibbles << (4 * np.arange(8, dtype=np.uint32))).sum(axis=-1).astype(np.uint32)
        return [*arrays, meta]


def _words(generator: Any, kind: str, count: int) -> Array:
    """[WARPS, count, 32] words: mostly moderate floats, in the last warps any bits."""
    bits = BITS[kind]
    word: Any = np.uint64 if bits == 64 else np.uint32
    shape = (WARPS, count, 32)
    random = generator.integers(0, np.iinfo(word).max, shape, word, endpoint=True)
    if kind not in _LAYOUT:
        return random
    exponent, fraction = _LAYOUT[kind]
    bias, per = (1 << exponent - 1) - 1, max(1, 32 // bits)
    spread = np.array([1, 3, 6])[np.arange(WARPS) % 3][:, None, None, None]
    lift = generator.integers(-spread, spread + 1, (WARPS, count, 32, per))
    fields = (np.clip(bias + lift, 1, 2 * bias - 1)).astype(np.uint64) << np.uint64(fraction)
    width = np.uint64(bits)
    keep = np.uint64(1 << bits - 1 | (1 << fraction) - 1)
    out = np.zeros(shape, np.uint64)
    for n in range(per):
        code = random.astype(np.uint64) >> np.uint64(n) * width & keep | fields[..., n]
        out |= code << np.uint64(n) * width
    out = out.astype(word)
    wild = WARPS - WARPS // 8
    out[wild:] = random[wild:]
    return out


def _forms() -> list[Form]:
    f64 = ("f64",) * 4
    out = [Form((m, 8, k), f64) for m, k in ((8, 4), (16, 4), (16, 8), (16, 16))]
    out += [Form((8, 8, 4), f64, modifier=f".{r}") for r in ("rz", "rm", "rp")]
    out += [Form((16, 8, 16), f64, modifier=".rz")]
    for layout in ("row.col", "row.row", "col.col", "col.row"):
        out.append(Form((8, 8, 4), ("f32", "f16", "f16", "f32"), layout))
    out.append(Form((8, 8, 4), ("f16", "f16", "f16", "f16")))
    out.append(Form((8, 8, 4), ("f32", "f16", "f16", "f16")))
    for types in (("s32", "s8", "u8", "s32"), ("s32", "u8", "s8", "s32")):
        for modifier in ("", ".satfinite"):
            out.append(Form((8, 8, 16), types, modifier=modifier))
    for shape in ((8, 8, 32), (16, 8, 32), (16, 8, 64)):
        for modifier in ("", ".satfinite"):
            out.append(Form(shape, ("s32", "s4", "u4", "s32"), modifier=modifier))
    for shape in ((8, 8, 128), (16, 8, 128), (16, 8, 256)):
        for operation in (".xor.popc", ".and.popc"):
            out.append(Form(shape, ("s32", "b1", "b1", "s32"), operation=operation))
    for k, selectors in ((16, (0, 1, 2, 3)), (32, (0, 1))):
        for s in selectors:
            out.append(Form((16, 8, k), ("f32", "f16", "f16", "f32"), selector=s))
        out.append(Form((16, 8, k), ("f16", "f16", "f16", "f16"), selector=1))
        out.append(Form((16, 8, k), ("f32", "bf16", "bf16", "f32"), selector=1))
    for k, selectors in ((8, (0, 1, 2, 3)), (16, (0, 1))):
        for s in selectors:
            out.append(Form((16, 8, k), ("f32", "tf32", "tf32", "f32"), selector=s))
    for kind, k in (("8", 32), ("4", 64)):
        types = ("s32", f"s{kind}", f"u{kind}", "s32")
        out += [Form((16, 8, k), types, selector=s) for s in (0, 1)]
        out.append(Form((16, 8, 2 * k), types, selector=0))
        out.append(Form((16, 8, 2 * k), types, modifier=".satfinite", selector=0))
    out.append(Form((16, 8, 64), ("f32", "e4m3", "e5m2", "f32"), selector=0))
    return out


FORMS = {form.name: form for form in _forms()}


@cache
def module() -> str:
    """One entry for each form."""
    return HEADER + "\n".join(form.entry for form in FORMS.values()) + "\n"
