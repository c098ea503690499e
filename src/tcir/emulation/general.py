"""Instructions of sm_100 outside tcgen05, as sequences of those that sm_90a has."""

from __future__ import annotations

from collections.abc import Callable

from tcir.emulation.sequence import Sequence, refused
from tcir.interp.ptx.syntax import Reg

Rule = Callable[[Sequence], None]


def _halves(s: Sequence) -> None:
    """add, sub, mul, fma of .f32x2: the same of both f32 (PTX ISA 9.7.3)."""
    each = s.instruction.mnemonic.removesuffix("x2")
    target, *sources = s.instruction.operands
    halves = []
    for source in sources:
        if not isinstance(source, Reg):
            raise refused(s.instruction, f"registers, got {source}", "move it to one")
        low, high = s.new(32), s.new(32)
        s.do(f"mov.b64 {{{low}, {high}}}, {source.name}")
        halves.append((low, high))
    out = s.new(32), s.new(32)
    for n, half in enumerate(out):
        s.do(f"{each} {half}, {', '.join(pair[n] for pair in halves)}")
    s.do(f"mov.b64 {s.value(target)}, {{{out[0]}, {out[1]}}}")


def rule(mnemonic: str) -> Rule | None:
    """What rewrites an instruction; None: it stays."""
    words = mnemonic.split(".")
    if words[-1] == "f32x2" and words[0] in ("add", "sub", "mul", "fma"):
        return _halves
    return None
