"""Finds loops that only wait. Polling again changes nothing in such a loop, so the warp may block
until the wait can succeed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcir.interp.ptx.op import BRANCH, EXIT, PLAIN, TRY_WAIT, Op
from tcir.interp.ptx.syntax import Address, Imm, Instruction, Not, Operand, Reg
from tcir.interp.ptx.watch.polling import Polling


def idle_waits(code: Sequence[Op], body: Sequence[Instruction]) -> Iterator[int]:
    """Yields the positions of waits whose loop ends only when the wait succeeds, and whose
    iterations are all alike.

    Such a loop consists of the wait, moves of values that the loop does not change, `not.pred` and
    branches. Any other loop, for instance one that counts or reads a clock, may end before the wait
    succeeds.
    """
    for end, op in enumerate(code):
        if op.kind == BRANCH and op.target <= end:
            loop = range(op.target, end + 1)
            waits = [at for at in loop if code[at].kind == TRY_WAIT]
            if len(waits) == 1 and _same_every_time(code, body, loop):
                yield waits[0]


def waits_that_give_up(code: Sequence[Op], body: Sequence[Instruction]) -> Iterator[int]:
    """Yields the positions of waits whose loop may end although the wait has not succeeded, for
    instance because the loop counts its iterations.
    """
    loops = [
        range(op.target, end + 1)
        for end, op in enumerate(code)
        if op.kind == BRANCH and 0 <= op.target <= end
    ]
    for at, op in enumerate(code):
        around = [loop for loop in loops if at in loop]
        if op.kind == TRY_WAIT and around and _gives_up(code, body, min(around, key=len), at):
            yield at


def _gives_up(code: Sequence[Op], body: Sequence[Instruction], loop: range, wait: int) -> bool:
    """Whether the loop can exit on a condition that does not depend on the wait."""
    written = {body[at].operands[0] for at in loop if code[at].kind == PLAIN and body[at].operands}
    follows: set[Operand] = set()
    for at in (*loop[wait - loop[0] :], *loop[: wait - loop[0]]):
        op, operands, guard = code[at], body[at].operands, _register(body[at].guard)
        if at == wait:
            follows.add(operands[0])
        elif op.kind in (BRANCH, EXIT):
            leaves = op.kind == EXIT or op.target not in loop or at == loop[-1]
            if guard is not None and leaves and guard not in follows:
                return True
        elif op.kind == PLAIN and operands:
            registers = [s for s in operands[1:] if isinstance(s, Reg)]
            known = all(s in follows or s not in written for s in registers)
            if known and any(s in follows for s in registers):
                follows.add(operands[0])
            else:
                follows.discard(operands[0])
    return False


def polled_loads(
    code: Sequence[Op], body: Sequence[Instruction]
) -> Iterator[tuple[int, Polling | None]]:
    """Yields the position of each load that repeats until the thread sees an awaited value, and the
    condition for that value (None if the condition is not recognised).

    Such a loop consists only of a load, tests of its result and `nanosleep`, and every branch
    depends on the tests.
    """
    for end, op in enumerate(code):
        if op.kind == BRANCH and 0 <= op.target <= end:
            loop = range(op.target, end + 1)
            loads = [at for at in loop if body[at].mnemonic.startswith("ld.")]
            if len(loads) == 1 and _goes_by(code, body, loop, loads[0]):
                yield loads[0], Polling.of(code, loop, loads[0])


def _goes_by(code: Sequence[Op], body: Sequence[Instruction], loop: range, load: int) -> bool:
    """Whether nothing in the loop but what the load reads differs from one time to the next, and
    each of its branches depends on that."""
    branches = [at for at in loop if code[at].kind == BRANCH]
    if any(code[at].target in loop[1:] for at in branches):
        return False
    sleeps = [at for at in loop if body[at].mnemonic.startswith("nanosleep.")]
    rest = [at for at in loop if at not in branches + sleeps and body[at].operands]
    written = {body[at].operands[0] for at in rest}
    depends: dict[Operand, bool] = {}  # what was written this time: on what the load has read?
    for at in loop:
        guard, operands = _register(body[at].guard), body[at].operands
        if at in branches:
            if not (depends.get(guard, False) if guard else at == loop[-1]):
                return False
        elif guard is not None or at not in rest + sleeps:
            return False
        elif at == load:
            address = operands[1]
            if not isinstance(address, Address) or address.base in written:
                return False
            depends[operands[0]] = True
        elif at in rest:
            known = (s for s in operands[1:] if isinstance(s, Reg | Imm))
            same = [s in depends or s not in written for s in known]
            compute = code[at].compute
            if compute is None or compute.across or len(same) < len(operands) - 1:
                return False
            if not all(same):
                return False
            depends[operands[0]] = any(depends.get(source, False) for source in operands[1:])
    return any(body[at].guard for at in branches)


def _register(guard: Reg | Not | None) -> Reg | None:
    return guard.reg if isinstance(guard, Not) else guard


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
