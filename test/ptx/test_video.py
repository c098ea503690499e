"""Video instructions, by the pseudocode of PTX ISA 9.7.18 written lane by lane in Python."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tcir.run import PtxSyntaxError, run_ptx

from .conftest import HEADER

SCALAR, SIMD = ("vadd", "vsub", "vabsdiff", "vmin", "vmax"), ("vavrg",)
LANES = 64
EDGES = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
COMPARE: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}


@dataclass(frozen=True)
class Form:
    """An instruction's spelling but its registers: name and modifiers, and selectors of d, a, b;
    negated: operands with a minus."""

    name: str
    types: str
    modifiers: str = ""
    d: str = ""
    a: str = ""
    b: str = ""
    negated: str = ""

    def text(self) -> str:
        def operand(letter: str, selector: str) -> str:
            minus = "-" if letter in self.negated else ""
            return f"{minus}%{letter}" + (f".{selector}" if selector else "")

        dots = ".".join(filter(None, [self.name, *self.types.split(), *self.modifiers.split()]))
        third = f", {operand('c', '')}" if self.third else ""
        named = (operand(x, getattr(self, x)) for x in "dab")
        return f"{dots} {', '.join(named)}{third};"

    @property
    def third(self) -> bool:
        seconds = {"add", "min", "max"} & {*self.modifiers.split()}
        return self.name[-1] in "24" or self.name == "vmad" or bool(self.d or seconds)


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >= 1 << (bits - 1) else value


def extract(word: int, selector: str, kind: str) -> int:
    size = {"b": 8, "h": 16, "": 32}[selector[:1]]
    value = word >> (size * int(selector[1:] or 0)) & ((1 << size) - 1)
    return signed(value, size) if kind == "s32" else value


def clamp(value: int, kind: str, bits: int) -> int:
    if kind == "s32":
        return max(-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, value))
    return max(0, min(2**bits - 1, value))


def primary(name: str, a: int, b: int, words: list[str]) -> int:
    match name:
        case "vadd":
            return a + b
        case "vsub":
            return a - b
        case "vabsdiff":
            return abs(a - b)
        case "vmin":
            return min(a, b)
        case "vmax":
            return max(a, b)
        case "vavrg":
            return (a + b + 1) // 2 if a + b >= 0 else (a + b) // 2
        case "vset":
            return int(COMPARE[next(w for w in words if w in COMPARE)](a, b))
    by = b % 32 if "wrap" in words else min(b, 32)
    return a * 2**by if name == "vshl" else a // 2**by


def expected(form: Form, a: int, b: int, c: int) -> int:
    words, kinds = form.modifiers.split(), form.types.split()
    if form.name == "vmad":
        return product(form, words, kinds, a, b, c)
    if form.name[-1] in "24":
        return elements(form, words, kinds, a, b, c)
    of_d, of_a, of_b = kinds if len(kinds) == 3 else ["u32", *kinds]
    found = primary(form.name, extract(a, form.a, of_a), extract(b, form.b, of_b), words)
    bits = {"b": 8, "h": 16, "": 32}[form.d[:1]]
    if "sat" in words:
        found = clamp(found, of_d, bits)
    third = extract(c, "", of_d)
    for word, second in (
        ("add", found + third),
        ("min", min(found, third)),
        ("max", max(found, third)),
    ):
        if word in words:
            return second % 2**32
    if not form.d:
        return found % 2**32
    low = bits * int(form.d[1:])
    raw = bytearray(c.to_bytes(4, "little"))
    raw[low // 8 : (low + bits) // 8] = (found % 2**bits).to_bytes(bits // 8, "little")
    return int.from_bytes(raw, "little")


def product(form: Form, words: list[str], kinds: list[str], a: int, b: int, c: int) -> int:
    odd = ("a" in form.negated) != ("b" in form.negated)
    final = "s32" in kinds[1:] or odd or "c" in form.negated
    found = extract(a, form.a, kinds[1]) * extract(b, form.b, kinds[2])
    if odd:
        found = -found
    if "c" in form.negated:  # ~c, extended, and one more
        found += signed(~c, 32) + 1
    else:
        found += (signed(c, 32) if final else c) + ("po" in words)
    for word in words:
        if word.startswith("shr"):
            found //= 2 ** int(word[3:])
    return (clamp(found, "s32" if final else "u32", 32) if "sat" in words else found) % 2**32


def elements(form: Form, words: list[str], kinds: list[str], a: int, b: int, c: int) -> int:
    count, letter = int(form.name[-1]), "h" if form.name[-1] == "2" else "b"
    of_d, of_a, of_b = kinds if len(kinds) == 3 else ["u32", *kinds]
    both, bits = a | b << 32, 32 // count

    def chosen(selector: str, default: str, kind: str) -> list[int]:
        return [extract(both, letter + n, kind) for n in reversed(selector[1:] or default)]

    first = chosen(form.a, "3210"[-count:], of_a)
    second = chosen(form.b, {2: "32", 4: "7654"}[count], of_b)
    mask = {int(n) for n in form.d[1:] or "3210"[-count:]}
    found = [primary(form.name[:-1], x, y, words) for x, y in zip(first, second, strict=True)]
    if "add" in words:
        return (c + sum(found[n] for n in mask)) % 2**32
    if "sat" in words:
        found = [clamp(each, of_d, bits) for each in found]
    old = [c >> bits * n for n in range(count)]
    return sum((found[n] if n in mask else old[n]) % 2**bits << bits * n for n in range(count))


def forms(seed: int, each: int) -> list[Form]:
    """`each` random forms of every instruction."""
    draw = random.Random(seed)
    parts = ["", "", "b0", "b1", "b2", "b3", "h0", "h1"]
    kind = lambda n: " ".join(draw.choice(("u32", "s32")) for _ in range(n))  # noqa: E731
    found = []
    for _ in range(each):
        for name in (*SCALAR, "vshl", "vshr", "vset"):
            words = [draw.choice(["", "sat"])] if name != "vset" else [draw.choice([*COMPARE])]
            words += [draw.choice(["clamp", "wrap"])] if name in ("vshl", "vshr") else []
            merged = draw.choice(["", "", *parts])
            words += [draw.choice(["", "add", "min", "max"])] if not merged else []
            types = {"vset": kind(2)}.get(name, kind(3))
            types = f"{kind(2)} u32" if name in ("vshl", "vshr") else types
            found.append(
                Form(name, types, " ".join(words), merged, draw.choice(parts), draw.choice(parts))
            )
        minus = draw.choice(["", "", "a", "b", "c", "ab"])
        kinds = kind(2)
        final = "s32" if "s" in kinds or minus in ("a", "b", "c") else "u32"
        words = [draw.choice(["", "sat"]), draw.choice(["", "shr7", "shr15"])]
        words += [draw.choice(["", "po"])] if not minus else []
        picks = draw.choice(parts), draw.choice(parts)
        found.append(Form("vmad", f"{final} {kinds}", " ".join(words), "", *picks, minus))
        for name, count in itertools.product((*SCALAR, *SIMD, "vset"), (2, 4)):
            letter = "h" if count == 2 else "b"
            chosen = sorted(draw.sample(range(count), draw.randint(1, count)), reverse=True)
            picks = [
                letter + "".join(str(draw.randrange(2 * count)) for _ in range(count)) for _ in "ab"
            ]
            picks = [draw.choice(["", pick]) for pick in picks]
            mask = draw.choice(["", letter + "".join(map(str, chosen))])
            words = [draw.choice([*COMPARE]), draw.choice(["", "add"])]
            words = words if name == "vset" else [draw.choice(["", "sat", "add"])]
            types = kind(2 if name == "vset" else 3)
            found.append(Form(f"{name}{count}", types, " ".join(words), mask, *picks))
    return found


def kernel(lines: list[str]) -> str:
    """Each thread stores one result of each line, of its own operands."""
    body = "\n".join(f"{line} st.global.b32 [%to+{4 * n}], %d;" for n, line in enumerate(lines))
    return f"""{HEADER.replace("8.8", "9.1")}
.visible .entry video(.param .u64 in, .param .u64 out)
{{
.reg .b32 %a, %b, %c, %d, %e, %i; .reg .b64 %from, %to;
ld.param.b64 %from, [in]; ld.param.b64 %to, [out];
mov.u32 %i, %tid.x;
mad.wide.u32 %from, %i, 16, %from; mad.wide.u32 %to, %i, {4 * len(lines)}, %to;
ld.global.v4.b32 {{%a, %b, %c, %e}}, [%from];
{body}
ret;
}}
"""


def operands(seed: int) -> np.ndarray:
    """[LANES, 4] words: edges, their neighbours, and random ones."""
    draw = random.Random(seed)
    words = [
        draw.choice(
            [draw.getrandbits(32), draw.choice(EDGES), draw.choice(EDGES) ^ draw.getrandbits(8)]
        )
        for _ in range(4 * LANES)
    ]
    return np.array(words, np.uint32).reshape(LANES, 4)


@pytest.mark.parametrize("seed", range(4))
def test_against_the_pseudocode(seed: int, assemble: Any) -> None:
    listed, words = forms(seed, 6), operands(seed)
    text = kernel([form.text() for form in listed])
    assemble(text)
    found = np.zeros((LANES, len(listed)), np.uint32)
    assert run_ptx(text, grid=1, block=LANES, args=[words, found]).ok
    for n, form in enumerate(listed):
        wanted = [expected(form, *map(int, row[:3])) for row in words]
        np.testing.assert_array_equal(found[:, n], np.array(wanted, np.uint32), form.text())


def test_every_instruction_is_drawn() -> None:
    names = """vadd vsub vabsdiff vmin vmax vshl vshr vmad vset
        vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2
        vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4"""
    assert {form.name for form in forms(0, 1)} == {*names.split()}


def test_in_a_function() -> None:
    """Selected and negated operands of a function are those of its call."""
    text = kernel(["call (%d), f, (%a, %b, %c);"]).replace(".visible", """
.func (.reg .b32 %r) f(.reg .b32 %x, .reg .b32 %y, .reg .b32 %z)
{ vmad.s32.s32.s32 %r, -%x.h0, %y.b1, %z; ret; }
.visible""", 1)  # fmt: skip
    words, found = operands(9), np.zeros((LANES, 1), np.uint32)
    assert run_ptx(text, grid=1, block=LANES, args=[words, found]).ok
    form = Form("vmad", "s32 s32 s32", "", "", "h0", "b1", "a")
    wanted = [expected(form, *map(int, row[:3])) for row in words]
    np.testing.assert_array_equal(found[:, 0], np.array(wanted, np.uint32))


@pytest.mark.parametrize(
    "line",
    [
        "vadd.s32.s32.s32.add %d.h1, %a, %b, %c;",
        "vadd.s32.s32.s32 %d, %a.h10, %b;",
        "vadd.s32.s32 %d, %a, %b;",
        "vshl.u32.u32.s32.clamp %d, %a, %b;",
        "vset.s32.s32.lt.sat %d, %a, %b;",
        "vmad.s32.s32.s32.po %d, -%a, %b, %c;",
        "vmad.s32.s32.s32 %d, -%a, %b, -%c;",
        "vmad.s32.s32.s32 %d.h0, %a, %b, %c;",
        "vadd4.s32.s32.s32.sat.add %d, %a, %b, %c;",
        "vadd4.s32.s32.s32 %d.b02, %a, %b, %c;",
        "vadd2.s32.s32.s32 %d, %a.h3, %b, %c;",
        "vadd2.s32.s32.s32 %d, %a.h34, %b, %c;",
        "vadd2.s32.s32.s32 %d, %a, %b;",
        "add.s32 %d, -%a, %b;",
    ],
)
def test_what_ptxas_rejects(line: str, assemble: Any) -> None:
    text = kernel([line])
    with pytest.raises(AssertionError, match="error"):
        assemble(text)
    try:
        report = run_ptx(text, grid=1, block=32, args=[operands(0), np.zeros(LANES, np.uint32)])
    except PtxSyntaxError:
        return
    assert report.incomplete
