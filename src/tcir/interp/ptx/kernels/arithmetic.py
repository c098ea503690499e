"""Kernels of instructions that compute."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.interp.ptx.kernels.template import vector

SIZES = {"i8": 1, "i32": 4, "i64": 8, "float": 4}


@dataclass(frozen=True)
class Spelled:
    """What an instruction becomes: the kernel, and the bytes of a lane of result and sources (a
    predicate has one byte)."""

    kernel: str
    out: int
    sources: tuple[int, ...]


TEXTS: list[str] = []
SPELLED: dict[str, Spelled] = {}
"""By the instruction as PTX spells it. What is not here is executed by numpy."""


def _add(
    spellings: tuple[str, ...], kernel: str, out: str, sources: tuple[str, ...], steps: str
) -> None:
    TEXTS.append(vector(kernel, out, sources, steps))
    spelled = Spelled(kernel, SIZES[out], tuple(SIZES[kind] for kind in sources))
    for spelling in spellings:
        SPELLED[spelling] = spelled


def _words(*patterns: str, width: int, letters: str = "us") -> tuple[str, ...]:
    return tuple(f"{p}.{letter}{width}" for p in patterns for letter in letters)


def _integers() -> None:
    for width in (32, 64):
        kind, v = f"i{width}", f"<32 x i{width}>"
        pair, three = (kind, kind), (kind, kind, kind)
        for name, step, letters in (
            ("add", "add", "us"), ("sub", "sub", "us"), ("mul.lo", "mul", "us"),
            ("and", "and", "b"), ("or", "or", "b"), ("xor", "xor", "b"),
        ):  # fmt: skip
            kernel = f"{name.replace('.', '_')}_{kind}"
            _add(_words(name, width=width, letters=letters), kernel, kind, pair,
                 f"  %r = {step} {v} %x, %y")  # fmt: skip
        _add(_words("mad.lo", width=width), f"mad_{kind}", kind, three,
             f"  %p = mul {v} %x, %y\n  %r = add {v} %p, %z")  # fmt: skip
        _add(_words("not", width=width, letters="b"), f"not_{kind}", kind, (kind,),
             f"  %r = xor {v} %x, splat ({kind} -1)")  # fmt: skip
        _add(_words("neg", width=width, letters="s"), f"neg_{kind}", kind, (kind,),
             f"  %r = sub {v} zeroinitializer, %x")  # fmt: skip
        _add((*_words("mov", width=width, letters="bus"), *(("mov.f32",) if width == 32 else
             ("mov.f64", "cvta.to.global.u64", "cvta.global.u64")),),
             f"copy_{kind}", kind, (kind,), f"  %r = bitcast {v} %x to {v}")  # fmt: skip
        for letter in "us":
            for name, word in (("min", "lt"), ("max", "gt")):
                _add((f"{name}.{letter}{width}",), f"{name}_{letter}{width}", kind, pair,
                     f"  %t = icmp {letter}{word} {v} %x, %y\n"
                     f"  %r = select <32 x i1> %t, {v} %x, {v} %y")  # fmt: skip
        _add(tuple(f"selp.{t}" for t in ("b32", "u32", "s32", "f32")) if width == 32 else
             tuple(f"selp.{t}" for t in ("b64", "u64", "s64", "f64")),
             f"select_{kind}", kind, (kind, kind, "i8"),
             f"  %t = icmp ne <32 x i8> %z, zeroinitializer\n"
             f"  %r = select <32 x i1> %t, {v} %x, {v} %y")  # fmt: skip
        _shifts(width)
        _comparisons(width)


def _shifts(width: int) -> None:
    """Amounts, of 32 bits, from the width on give 0, or the sign."""
    kind, v = f"i{width}", f"<32 x i{width}>"
    for spellings, name, step in (
        (_words("shl", width=width, letters="b"), "shl", "shl"),
        (_words("shr", width=width, letters="ub"), "shr_u", "lshr"),
        (_words("shr", width=width, letters="s"), "shr_s", "ashr"),
    ):
        extend = "  %w = add <32 x i32> %m, zeroinitializer\n" if width == 32 else (
            "  %w = zext <32 x i32> %m to <32 x i64>\n")  # fmt: skip
        shifted = (
            f"  %big = icmp ugt <32 x i32> %y, splat (i32 {width - 1})\n"
            f"  %m = select <32 x i1> %big, <32 x i32> splat (i32 {width - 1}), <32 x i32> %y\n"
            f"{extend}  %s = {step} {v} %x, %w\n"
        )
        result = f"  %r = select <32 x i1> %big, {v} zeroinitializer, {v} %s"
        if step == "ashr":
            result = f"  %r = bitcast {v} %s to {v}"
        _add(spellings, f"{name}_{kind}", kind, (kind, "i32"), shifted + result)


def _comparisons(width: int) -> None:
    kind, v = f"i{width}", f"<32 x i{width}>"
    for word in ("eq", "ne", "lt", "le", "gt", "ge"):
        for letter in "us":
            test = word if word in ("eq", "ne") else letter + word
            spellings = [f"setp.{word}.{letter}{width}"]
            if word in ("eq", "ne") and letter == "u":
                spellings.append(f"setp.{word}.b{width}")
            more = {"lt": "lo", "le": "ls", "gt": "hi", "ge": "hs"}
            if word in more and letter == "u":
                spellings.append(f"setp.{more[word]}.u{width}")
            _add(tuple(spellings), f"setp_{word}_{letter}{width}", "i8", (kind, kind),
                 f"  %t = icmp {test} {v} %x, %y\n"
                 f"  %r = zext <32 x i1> %t to <32 x i8>")  # fmt: skip


def _widths() -> None:
    """From one width of integers to another."""
    w, q = "<32 x i32>", "<32 x i64>"
    for letter, step in (("u", "zext"), ("s", "sext")):
        both = f"  %u = {step} {w} %x to {q}\n  %v = {step} {w} %y to {q}\n"
        _add((f"mul.wide.{letter}32",), f"mul_wide_{letter}32", "i64", ("i32", "i32"),
             f"{both}  %r = mul {q} %u, %v")  # fmt: skip
        _add((f"mad.wide.{letter}32",), f"mad_wide_{letter}32", "i64", ("i32", "i32", "i64"),
             f"{both}  %p = mul {q} %u, %v\n  %r = add {q} %p, %z")  # fmt: skip
        _add((f"mul.hi.{letter}32",), f"mul_hi_{letter}32", "i32", ("i32", "i32"),
             f"{both}  %p = mul {q} %u, %v\n  %h = lshr {q} %p, splat (i64 32)\n"
             f"  %r = trunc {q} %h to {w}")  # fmt: skip
        _add((f"cvt.u64.{letter}32", f"cvt.s64.{letter}32"), f"widen_{letter}32", "i64", ("i32",),
             f"  %r = {step} {w} %x to {q}")  # fmt: skip
        _add((f"cvt.rn.f32.{letter}32",), f"float_{letter}32", "float", ("i32",),
             f"  %r = {letter}itofp {w} %x to <32 x float>")  # fmt: skip
    _add(tuple(f"cvt.{a}32.{b}64" for a in "us" for b in "us"), "narrow", "i32", ("i64",),
         f"  %r = trunc {q} %x to {w}")  # fmt: skip


def _predicates() -> None:
    v = "<32 x i8>"
    for word in ("and", "or", "xor"):
        _add((f"{word}.pred",), f"{word}_pred", "i8", ("i8", "i8"), f"  %r = {word} {v} %x, %y")
    _add((), "not_pred", "i8", ("i8",), f"  %r = xor {v} %x, splat (i8 1)")
    _add(("mov.pred", "not.pred"), "copy_pred", "i8", ("i8",), f"  %r = bitcast {v} %x to {v}")
    _add((), "select_i8", "i8", ("i8", "i8", "i8"),
         f"  %t = icmp ne {v} %z, zeroinitializer\n"
         f"  %r = select <32 x i1> %t, {v} %x, {v} %y")  # fmt: skip


_NAN = "splat (i32 2147483647)"
"""NaN that every f32 instruction returns."""


def _floats() -> None:
    f, w = "<32 x float>", "<32 x i32>"
    finish = (
        f"  %nan = fcmp uno {f} %e, %e\n  %bits = bitcast {f} %e to {w}\n"
        f"  %r = select <32 x i1> %nan, {w} {_NAN}, {w} %bits"
    )
    for word in ("add", "sub", "mul", "div"):
        spellings = (f"{word}.rn.f32", f"{word}.f32") if word != "div" else ("div.rn.f32",)
        _add(spellings, f"{word}_f32", "i32", ("float", "float"),
             f"  %e = f{word} {f} %x, %y\n{finish}")  # fmt: skip
    _add(("fma.rn.f32", "mad.rn.f32"), "fma_f32", "i32", ("float", "float", "float"),
         f"  %e = call {f} @llvm.fma.v32f32({f} %x, {f} %y, {f} %z)\n{finish}")  # fmt: skip
    for word, test, zeros in (("min", "olt", "or"), ("max", "ogt", "and")):
        _add((f"{word}.f32",), f"{word}_f32", "i32", ("float", "float"),
             f"  %u = bitcast {f} %x to {w}\n  %v = bitcast {f} %y to {w}\n"
             f"  %same = {zeros} {w} %u, %v\n"
             f"  %equal = fcmp oeq {f} %x, %y\n  %first = fcmp {test} {f} %x, %y\n"
             f"  %p = select <32 x i1> %first, {w} %u, {w} %v\n"
             f"  %q = select <32 x i1> %equal, {w} %same, {w} %p\n"
             f"  %na = fcmp uno {f} %x, %x\n  %nb = fcmp uno {f} %y, %y\n"
             f"  %s = select <32 x i1> %nb, {w} %u, {w} %q\n"
             f"  %t = select <32 x i1> %na, {w} %v, {w} %s\n"
             f"  %both = and <32 x i1> %na, %nb\n"
             f"  %r = select <32 x i1> %both, {w} {_NAN}, {w} %t")  # fmt: skip
    for word in ("eq", "ne", "lt", "le", "gt", "ge"):
        _add((f"setp.{word}.f32",), f"setp_{word}_f32", "i8", ("float", "float"),
             f"  %t = fcmp o{word} {f} %x, %y\n  %r = zext <32 x i1> %t to <32 x i8>")  # fmt: skip


for _group in (_integers, _widths, _predicates, _floats):
    _group()
