"""Instructions by which threads affect each other: strong accesses, and launch control.

If the run has a seed, warps and CTAs yield to each other before these instructions. Between two of
these instructions, nothing that a program may rely on depends on the progress of other threads,
because data races are findings in any order. So no other scheduling points are needed. The results
of `red` do not depend on the order of several `red`, so a `red` is a scheduling point only if other
CTAs may access its target by another instruction.

A strong load and a strong store may together update a word, as an atomic would. If other threads
also write the word, the update must be one atomic instruction, or those threads must be excluded
during the update (`tcir.machine.memory.updates`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcir.interp.ptx.isa.memory import Load, Store
from tcir.interp.ptx.op import BRANCH, EXIT, INDEXED, Op
from tcir.interp.ptx.syntax import Instruction
from tcir.interp.ptx.watch.following import Following
from tcir.machine.order.strong import Update

_MEETS = re.compile(
    r"atom\.|(ld|st)\.(\S+\.)?(acquire|release|relaxed|volatile|mmio)\b|clusterlaunchcontrol\.try"
)
_INSIDE = re.compile(r"\.shared\b")


def meets(mnemonic: str) -> bool:
    """Whether other threads may change the effect of an instruction, without a data race."""
    return _MEETS.match(mnemonic) is not None


def among_ctas(mnemonic: str) -> bool:
    """Whether an instruction may interact with threads of other clusters. Instructions on
    `.shared::cluster` do not; launch control does.
    """
    asks = mnemonic.startswith("clusterlaunchcontrol")
    return meets(mnemonic) and (asks or _INSIDE.search(mnemonic) is None)


def mark_reductions(code: Sequence[Op], body: Sequence[Instruction]) -> None:
    """Makes every `red` a scheduling point if other clusters may concurrently read the target of
    the `red`.
    """
    if any(among_ctas(each.mnemonic) for each in body):
        for op, each in zip(code, body, strict=False):
            op.meets |= each.mnemonic.startswith("red.") and _INSIDE.search(each.mnemonic) is None


def parted(straight: list[int], code: list[Op]) -> list[int]:
    """Splits the ranges of `straight` (see `DecodedEntry` in `program.py`) before each instruction
    whose `meets` is set.
    """
    ends = list(straight)
    for at in reversed(range(len(code) - 1)):
        if ends[at] > at:
            ends[at] = at if code[at].meets else ends[at + 1]
    return ends


def mark_updates(code: Sequence[Op]) -> None:
    """Assigns an `Update` to each strong load and each strong store that may together update a
    word.
    """
    stores = {at: op for at, op in enumerate(code) if _strong(op, Store)}
    loads = [at for at, op in enumerate(code) if _strong(op, Load)] if stores else []
    for at in loads:
        feeds, decides = _uses(code, at, stores)
        if feeds or decides:
            code[at].update = Update(at, feeds, decides)
        if decides and isinstance(form := code[at].form, Load) and len(form.moves) == 1:
            code[at].follows = Following(code, at).store
    for at, op in stores.items():
        op.update = Update(at, frozenset(), False)


def _strong(op: Op, form: type) -> bool:
    found = op.form
    return isinstance(found, Load | Store) and isinstance(found, form) and not found.plain


def _uses(code: Sequence[Op], load: int, stores: dict[int, Op]) -> tuple[frozenset[int], bool]:
    """Stores of values derived from a loaded value, and whether it affects the thread's control
    flow.

    The value is traced through registers, wherever they are used; a value stored to the CTA's
    memory may also affect another thread's.
    """
    values, before = set(code[load].writes), -1
    while len(values) != before:
        before = len(values)
        for at, op in enumerate(code):
            if at != load and not values.isdisjoint((op.guard, *op.reads)):
                values.update(op.writes)
    feeds, decides = set(), False
    for at, op in enumerate(code):
        jumps = op.kind in (BRANCH, EXIT, INDEXED)
        decides |= op.guard in values and (jumps or at in stores)
        decides |= jumps and not values.isdisjoint(op.reads)
        if isinstance(op.form, Store) and any(slot in values for slot, _ in op.form.sources):
            if at in stores:
                feeds.add(at)
            decides |= op.form.place.space != "global" and at not in stores
    return frozenset(feeds), decides
