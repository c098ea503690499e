"""Loops that only wait: polling again changes nothing, so the warp may block instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcir.interp.ptx.op import BRANCH, TRY_WAIT, Op
from tcir.interp.ptx.syntax import Imm, Instruction, Reg


def idle_waits(code: Sequence[Op], body: Sequence[Instruction]) -> Iterator[int]:
    """Places of waits whose loop ends only when they hold, and is the same every time round.

    Such a loop is the wait, moves of what the loop does not change, `not.pred` and branches. A loop
    that counts, reads a clock or does anything else is not one: it may give up.
    """
    for end, op in enumerate(code):
        if op.kind == BRANCH and op.target <= end:
            loop = range(op.target, end + 1)
            waits = [at for at in loop if code[at].kind == TRY_WAIT]
            if len(waits) == 1 and _same_every_time(code, body, loop):
                yield waits[0]


def _same_every_time(code: Sequence[Op], body: Sequence[Instruction], loop: range) -> bool:
    branches = [at for at in loop if code[at].kind == BRANCH]
    others = [at for at in loop if code[at].kind != BRANCH]
    if any(code[at].target in loop[1:] for at in branches):
        return False
    if any(code[at].guard >= 0 or not _harmless(code[at], body[at]) for at in others):
        return False
    written = {body[at].operands[0] for at in others}
    moves = [body[at] for at in others if body[at].mnemonic.startswith("mov.")]
    return all(move.operands[1] not in written for move in moves)


def _harmless(op: Op, instruction: Instruction) -> bool:
    if op.kind == TRY_WAIT or instruction.mnemonic == "not.pred":
        return isinstance(instruction.operands[0], Reg)
    if not instruction.mnemonic.startswith("mov."):
        return False
    target, source = instruction.operands
    return isinstance(target, Reg) and isinstance(source, Reg | Imm)
