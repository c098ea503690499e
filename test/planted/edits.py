"""Edits of a program's text, as functions from text to text."""

from __future__ import annotations

import re
from collections.abc import Callable

Edit = Callable[[str], str]


def sub(pattern: str, replacement: str | Callable[[re.Match[str]], str], count: int = 0) -> Edit:
    """Replaces all matches of a regular expression, or the first `count`."""
    return lambda text: re.sub(pattern, replacement, text, count=count)


def results(of: str, *lines: str) -> Edit:
    """Puts every result of the MLIR ops that match `of` through the ops in `lines`.

    These come behind the wait that follows a load from tensor memory, if one does.
    In `lines`, $x is the old value and $y the new one, $T is its type, $E(f16) the type with
    other elements, $D(1.0) a constant of such a type; other names that start with $ are new values.
    """
    head = re.compile(rf"^(\s*)%(\w+) = ({of}.*)((?:\n.*\"tc\.tmem_wait\".*)?)$", re.M)

    def extended(match: re.Match[str]) -> str:
        indent, name, op, wait = match.groups()
        type_ = re.split(r" -> | to | : ", op.split(" loc(")[0])[-1].strip()
        return "\n".join(
            [f"{indent}%old_{name} = {op}{wait}", *_filled(lines, indent, name, type_)]
        )

    return lambda text: head.sub(extended, text)


def operand(of: str, number: int, *lines: str) -> Edit:
    """Puts operand `number` of the MLIR ops ``"name"(...)`` that match `of` through `lines`."""
    head = re.compile(rf"^(\s*)(.*{of}\()([^)]*)(\).* : \()([^)]*)(\).*)$", re.M)

    def extended(match: re.Match[str]) -> str:
        names, types = match[3].split(", "), match[5].split(", ")
        old = names[number][1:]
        text = _filled(lines, match[1], old, types[number], f"%{old}", f"%new_{old}")
        names[number] = f"%new_{old}"
        return "\n".join(
            [*text, f"{match[1]}{match[2]}{', '.join(names)}{match[4]}{match[5]}{match[6]}"]
        )

    return lambda text: head.sub(extended, text)


def sums(*lines: str) -> Edit:
    """Puts the sum that an epilogue takes through `lines`."""
    body = re.compile(r"^( *)\^bb0\(%(\w+): (\w+)\):((?:\n.*)*?\n *\"tc\.yield\")", re.M)

    def extended(match: re.Match[str]) -> str:
        indent, name, type_, rest = match.groups()
        first = f"{indent}^bb0(%{name}: {type_}):"
        filled = _filled(lines, indent + "  ", name, type_, f"%{name}", f"%new_{name}")
        return "\n".join([first, *filled]) + re.sub(rf"%{name}\b", f"%new_{name}", rest)

    return lambda text: body.sub(extended, text)


def _filled(
    lines: tuple[str, ...], indent: str, name: str, type_: str, old: str = "", new: str = ""
) -> list[str]:
    def with_elements(match: re.Match[str]) -> str:
        return (
            re.sub(r"(?<=[<x])[a-zA-Z]\w*>$", f"{match[1]}>", type_) if "<" in type_ else match[1]
        )

    filled = []
    for line in lines:
        line = re.sub(r"\$E\((\w+)\)", with_elements, line)
        line = re.sub(r"\$D\(([^)]*)\)", r"dense<\1>" if "<" in type_ else r"\1", line)
        line = line.replace("$T", type_)
        line = re.sub(r"\$x\b", old or f"%old_{name}", line)
        line = re.sub(r"\$y\b", new or f"%{name}", line)
        filled.append(indent + re.sub(r"\$(\w+)", rf"%\1_{name}", line))
    return filled


def source(of: str, *lines: str) -> Edit:
    """Puts the first operand of ops ``%r = op %x, … : type`` that match `of` through `lines`."""
    head = re.compile(rf"^(\s*)(%\w+ = {of}.*? )%([\w#]+)(.*? : )(.*?)( to .*| loc\(.*)?$", re.M)

    def extended(match: re.Match[str]) -> str:
        indent, op, old, middle, type_, rest = match.groups()
        name = f"{old.replace('#', '_')}_{len(match.string[: match.start()])}"
        filled = _filled(lines, indent, name, type_, f"%{old}", f"%new_{name}")
        return "\n".join([*filled, f"{indent}{op}%new_{name}{middle}{type_}{rest or ''}"])

    return lambda text: head.sub(extended, text)


def constant(old: int, new: int, count: int = 0) -> Edit:
    """Gives all `arith.constant` and `llvm.mlir.constant` of a value another one, or the first."""
    return sub(rf"(= (?:arith|llvm\.mlir)\.constant[ (]){old} :", rf"\g<1>{new} :", count)


def both(*edits: Edit) -> Edit:
    """One edit after the other."""

    def edit(text: str) -> str:
        for each in edits:
            changed = each(text)
            assert changed != text, "the edit changes nothing"
            text = changed
        return text

    return edit


# Bodies for `results` and `operand`, on floats of type $T.


def through(narrow: str) -> tuple[str, ...]:
    """Rounded to a narrower type and back."""
    return (
        f"$n = arith.truncf $x : $T to $E({narrow})",
        f"$y = arith.extf $n : $E({narrow}) to $T",
    )


def number(name: str, value: str, type_: str = "$T") -> str:
    """A constant, in every element if the type has several."""
    return f"${name} = arith.constant $D({value}) : {type_}"


def clamped(low: str, high: str, kind: str = "imumf") -> tuple[str, ...]:
    """Between two numbers; kind "imumf" keeps NaN, "numf" does not."""
    return (
        number("l", low),
        number("h", high),
        f"$m = arith.max{kind} $x, $l : $T",
        f"$y = arith.min{kind} $m, $h : $T",
    )


def where(test: str, limit: str, other: str) -> tuple[str, ...]:
    """`other` instead of values whose magnitude passes ``arith.cmpf test, magnitude, limit``."""
    return (
        number("z", "0.0"),
        number("c", limit),
        number("o", other),
        "$g = arith.subf $z, $x : $T",
        "$a = arith.maximumf $x, $g : $T",
        f"$p = arith.cmpf {test}, $a, $c : $T",
        "$y = arith.select $p, $o, $x : $E(i1), $T",
    )


def masked(mask: int) -> tuple[str, ...]:
    """The bits of f32 and a mask."""
    return (
        "$b = arith.bitcast $x : $T to $E(i32)",
        number("c", str(mask), "$E(i32)"),
        "$d = arith.andi $b, $c : $E(i32)",
        "$y = arith.bitcast $d : $E(i32) to $T",
    )
