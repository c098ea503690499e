"""Instructions that only compute, as PTX spells them, with the sizes of their operands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.kernels.derived import DerivedKernel, kernels
from tcir.interp.ptx.op import Compute
from tcir.interp.ptx.parser import parse
from tcir.interp.ptx.registers import Slots
from tcir.interp.ptx.registry import DECODERS, find
from tcir.machine.jit import native

from .conftest import HEADER

SIZES = {"p": 1, "h": 2, "w": 4, "q": 8}
REGISTERS = {"p": "%p", "h": "%h", "w": "%a", "q": "%q"}


@dataclass(frozen=True)
class Scalar:
    """Its result and sources, a letter of `SIZES` each; suffix: of the operands, as text."""

    letters: str
    suffix: str = ""

    @property
    def out(self) -> int:
        """Bytes of a lane of the result."""
        return SIZES[self.letters[0]]

    @property
    def sources(self) -> tuple[int, ...]:
        """Bytes of a lane of the sources."""
        return tuple(SIZES[letter] for letter in self.letters[1:])


SCALAR: dict[str, Scalar] = {}


def _add(pattern: str, letters: str, suffix: str = "", **names: str) -> None:
    """Adds all spellings of a pattern: `names` has the words of each place of it, @ for none."""
    spellings = [pattern]
    for name, words in names.items():
        spellings = [s.replace(f"{{{name}}}", w) for s in spellings for w in words.split(" ")]
    for spelling in spellings:
        SCALAR[spelling.replace("@", "")] = Scalar(letters, suffix)


for _n, _w, _letter in ((32, "w", "w"), (64, "q", "q"), (16, "h", "h")):
    _two, _three = 3 * _w, 4 * _w
    _add("{op}.{t}" + f"{_n}", _two, op="add sub mul.lo mul.hi min max", t="u s")
    _add("mad.lo.{t}" + f"{_n}", _three, t="u s")
    _add("sad.{t}" + f"{_n}", _three, t="u s")
    _add("{op}.b" + f"{_n}", _two, op="and or xor")
    _add("{op}.b" + f"{_n}", 2 * _w, op="not cnot")
    _add("{op}.s" + f"{_n}", 2 * _w, op="neg abs")
    _add("shl.b" + f"{_n}", _w + _w + "w")
    _add("shr.{t}" + f"{_n}", _w + _w + "w", t="b u s")
    _add("selp.{t}" + f"{_n}", _three[:3] + "p", t="b u s")
    _add("mov.{t}" + f"{_n}", 2 * _w, t="b u s")
    _add("setp.{c}.{t}" + f"{_n}", "p" + 2 * _w, c="eq ne lt le gt ge", t="u s")
    _add("setp.{c}.u" + f"{_n}", "p" + 2 * _w, c="lo ls hi hs")
    _add("setp.{c}.b" + f"{_n}", "p" + 2 * _w, c="eq ne")
    _add("setp.{c}.{b}.{t}" + f"{_n}", "p" + 2 * _w + "p", c="lt ne", b="and or xor", t="u s")
for _n, _wide, _letters in ((16, "w", "hh"), (32, "q", "ww")):
    _add("mul.wide.{t}" + f"{_n}", _wide + _letters, t="u s")
    _add("mad.wide.{t}" + f"{_n}", _wide + _letters + _wide, t="u s")
_add("cvta.{t}.u64", "qq", t="to.global global")
_add("{op}.{t}32", "www", op="div rem", t="u s")
_add("{op}.{t}64", "qqq", op="div rem", t="u s")
_add("mad.hi.sat.s32", "wwww")
_add("{op}.sat.s32", "www", op="add sub")
_add("{op}.{t}", "www", op="add min max", t="u16x2 s16x2")
_add("{op}.lo.{t}32", "www", op="mul24", t="u s")
_add("{op}.hi.{t}32", "wwww", op="mad24", t="u s")
_add("shf.{d}.{m}.b32", "wwww", d="l r", m="clamp wrap")
_add("lop3.b32", "wwww", ", 0xE8")
_add("bmsk.{m}.b32", "www", m="clamp wrap")
_add("szext.{m}.{t}32", "www", m="clamp wrap", t="u s")
_add("bfe.{t}32", "wwww", t="u s")
_add("bfe.{t}64", "qqww", t="u s")
_add("prmt.b32", "wwww")
_add("{op}.b32", "ww", op="popc clz brev bfind")
_add("{op}.b64", "wq", op="popc clz bfind")
_add("cvt.{a}64.{b}32", "qw", a="u s", b="u s")
_add("cvt.{a}32.{b}64", "wq", a="u s", b="u s")
_add("cvt.{a}32.{b}16", "wh", a="u s", b="u s")
_add("cvt.{a}16.{b}32", "hw", a="u s", b="u s")
_add("cvt.{a}32.{b}8", "ww", a="u s", b="u s")
_add("cvt.sat.{a}.{b}32", "ww", a="u8 s8", b="u s")
_add("cvt.{m}.{f}.{t}32", "ww", m="rn rz", f="f32", t="u s")
_add("cvt.{m}.f32.{t}64", "wq", m="rn rz rm", t="u s")
_add("cvt.rn.f64.{t}64", "qq", t="u s")
_add("cvt.{m}.{t}32.f32", "ww", m="rzi rni rmi", t="u s")
_add("cvt.{m}.{t}64.f64", "qq", m="rzi rpi", t="u s")
_add("cvt.{m}.f32.f64", "wq", m="rn rz rp")
_add("cvt.f64.f32", "qw")
_add("cvt.{m}.bf16.f32", "hw", m="rn rz")
_add("cvt.f32.bf16", "wh")
_add("cvt.{m}.bf16x2.f32", "www", m="rn rz rn.relu")
_add("cvt.{m}.tf32.f32", "ww", m="rna rn rz")
for _op in ("and", "or", "xor"):
    _add(f"{_op}.pred", "ppp")
_add("{op}.pred", "pp", op="not mov")
_add("{op}.{m}f32", "www", op="add sub mul", m="rn. rz. rm. rp. rn.ftz. rn.sat. rz.ftz.sat.")
_add("{op}.f32", "www", op="add sub mul min max")
_add("{op}.{m}.f32", "www", op="div", m="rn rz rm rp rn.ftz")
_add("{op}.{m}.f32", "wwww", op="fma", m="rn rz rm rp rn.ftz rn.sat")
_add("mad.rn.f32", "wwww")
_add("{op}.{m}.f32", "www", op="min max", m="ftz NaN ftz.NaN NaN.xorsign.abs")
_add("{op}.f32", "ww", op="neg abs neg.ftz abs.ftz")
_add("copysign.f32", "www")
_add("{op}.{m}.f32", "ww", op="sqrt rcp", m="rn rz rm rp rn.ftz")
_add("testp.{c}.f32", "pw", c="finite infinite number notanumber normal subnormal")
_add("setp.{c}.{m}f32", "pww", c="eq ne lt le gt ge equ neu ltu leu gtu geu num nan", m="@ ftz.")
_add("selp.f32", "wwwp")
_add("selp.f64", "qqqp")
_add("{op}.f64", "qqq", op="add sub mul min max")
_add("div.rn.f64", "qqq")
_add("sqrt.rn.f64", "qq")
_add("{op}.f64", "qq", op="neg abs")
_add("setp.{c}.f64", "pqq", c="eq ne lt le gt ge equ neu ltu num nan")
_add("{op}.rn.{m}bf16", "hhh", op="add sub mul", m="@")
_add("fma.rn.bf16", "hhhh")
_add("{op}.rn.bf16x2", "www", op="add sub mul")
_add("fma.rn.{m}bf16x2", "wwww", m="@ relu.")
_add("{op}.bf16x2", "www", op="min max min.NaN max.NaN")
_add("{op}.approx.{m}f32", "ww", op="ex2 lg2", m="@ ftz.")
_ALL = set(SCALAR)
_add("cvt.{m}.f16.f32", "hw", m="rn rn.relu rn.satfinite")
_add("cvt.rn.f16.f64", "hq")
_add("cvt.f32.f16", "wh")
_add("cvt.f64.f16", "qh")
_add("cvt.{m}.f16x2.f32", "www", m="rn rn.relu")
_add("cvt.rn.f16.{t}32", "hw", t="u s")
_add("cvt.rzi.{t}32.f16", "wh", t="u s")
_add("{op}.rn.{m}f16", "hhh", op="add sub mul", m="@ ftz. sat.")
_add("fma.rn.{m}f16", "hhhh", m="@ relu.")
_add("{op}.rn.f16x2", "www", op="add sub mul")
_add("fma.rn.f16x2", "wwww")
_add("{op}.{m}f16", "hhh", op="min max", m="@ NaN.")
_add("{op}.f16x2", "www", op="min max")
_add("setp.{c}.f16", "phh", c="eq lt geu nan")

HALVES = set(SCALAR) - _ALL
NUMPY_ONLY = {"prmt.b32"} | (set() if native.converts_half() else HALVES)
"""Instructions that no kernel computes: prmt moves single bytes."""


def written(spelling: str, result: str, *sources: str) -> str:
    """The instruction with these operands."""
    return f"{spelling} {', '.join((result, *sources))}{SCALAR[spelling].suffix};"


def computed(spelling: str) -> Compute:
    """The function that the decoder of an instruction gives."""
    known = SCALAR[spelling]
    body = written(spelling, *(f"{REGISTERS[one]}{n}" for n, one in enumerate(known.letters)))
    text = f"""{HEADER}.visible .entry k() {{
 .reg .pred %p<5>; .reg .b16 %h<5>; .reg .b32 %a<5>; .reg .b64 %q<5>; {body} ret; }}"""
    module = parse(text)
    (function,) = module.functions.values()
    slots = Slots()
    for register in function.registers:
        slots.new(register.type.size, register.name)
    instruction = function.body[0]
    name = find(instruction.mnemonic)
    decode = Decode(instruction, name, slots, function, lambda *_: None, module.target)
    compute = DECODERS[name](decode).compute
    assert compute is not None, spelling
    return compute


def take_for(patch: pytest.MonkeyPatch, right: np.ufunc, wrong: np.ufunc) -> None:
    """A mistake: compiled code computes `wrong` where the rule is `right`."""

    def mistaken(self: Compute) -> tuple[DerivedKernel, ...] | None:
        fn = wrong if self.fn is right else self.fn
        return None if self.across else kernels(fn, *self.dtypes)

    patch.setattr(Compute, "kernels", property(mistaken))
