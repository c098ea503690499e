"""Replaces approximate instructions by functions whose results have the same bits on every GPU.

No document fixes the bits of `ex2.approx` and similar instructions, and ptxas may fuse a product
and a sum to one `fma`. For comparisons with the simulated machine this module fixes the bits. An
approximation is the f64 result, rounded once, as on the simulated machine; products and sums are
rounded separately. `sin` and `cos`, and approximations of f64, are left unchanged.
"""

from __future__ import annotations

from tcir.emulation.general import Rule, rounded
from tcir.emulation.sequence import Sequence
from tcir.interp.ptx.syntax import Instruction

FUNCTIONS = {"ex2": "exp2", "lg2": "log2", "tanh": "tanh", "rsqrt": "rsqrt"}
"""PTX functions and their names in `approximate.cuh`."""
EXACT = ("rcp", "sqrt", "div")
"""Functions that PTX also has with a single rounding (.rn)."""
FLOATS = ("f32", "f16", "bf16", "f16x2", "bf16x2", "f64")


def _once(s: Sequence) -> None:
    """Replaces the instruction by its version with a single rounding."""
    each = s.instruction.mnemonic.replace(".approx", ".rn").replace(".full", ".rn")
    _same(s, each)


def _apart(s: Sequence) -> None:
    _same(s, rounded(s.instruction.mnemonic))


def _same(s: Sequence, mnemonic: str) -> None:
    s.do(f"{mnemonic} {', '.join(map(s.value, s.instruction.operands))}")


def _in_f64(s: Sequence) -> None:
    """Computes a function of one number, or of both halves of a register, in f64."""
    name, *words = s.instruction.mnemonic.split(".")
    target, source = (s.value(each) for each in s.instruction.operands)
    kind = words[-1].removesuffix("x2")
    ftz = ".ftz" if "ftz" in words and kind == "f32" else ""
    sat = ".sat" if "sat" in words else ""
    pairs = [(target, source)]
    if words[-1].endswith("x2"):
        halves = [(s.new(16), s.new(16)) for _ in range(2)]
        pairs = [*zip(*halves, strict=True)]
        s.do(f"mov.b32 {{{', '.join(halves[1])}}}, {source}")
    for out, given in pairs:
        x = s.new(64)
        s.do(f"cvt{ftz}.f64.{kind} {x}, {given}")
        s.call_plain(FUNCTIONS[name], (64, x), result=x)
        s.do(f"cvt.rn{ftz}{sat}.{kind}.f64 {out}, {x}")
    if len(pairs) > 1:
        s.do(f"mov.b32 {target}, {{{', '.join(out for out, _ in pairs)}}}")


def rule(i: Instruction) -> Rule | None:
    """The rule that rewrites an instruction; None if its bits are already defined."""
    name, *words = i.mnemonic.split(".")
    if not words or words[-1] not in FLOATS:
        return None
    if {"approx", "full"} & {*words}:
        if words[-1] == "f64":
            return None
        if name in EXACT:
            return _once
        return _in_f64 if name in FUNCTIONS else None
    return _apart if rounded(i.mnemonic) != i.mnemonic and words[-2:-1] != ["f32"] else None
