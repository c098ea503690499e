"""Faults with a name, planted in PTX of our own pipelines: a table of edit and expected report.

Where `mutants` damages any instruction, each fault here is one that a writer of pipelines makes: a
wait, a commit or a `bar.sync` that is missing, a byte count or a parity that is off, an arrival too
many, an overlap of tiles. Beside them are edits that leave the program legal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .mutants import Statement, statements

Edit = Callable[[str], str]
Change = Callable[[Statement], str]

EMPTY, FULL, ACCUMULATOR = 0, 1, 2
"""The waits of a role kernel in its text: the producer's, the mma warp's, the epilogue's."""
WAIT, EXPECT, TMA = "mbarrier.try_wait", "mbarrier.arrive.expect_tx", "cp.async.bulk.tensor"
INIT, COMMIT, MMA, COPY = "mbarrier.init", "tcgen05.commit", "tcgen05.mma", "tcgen05.cp"
BEFORE, AFTER = "tcgen05.fence::before_thread_sync", "tcgen05.fence::after_thread_sync"


@dataclass(frozen=True)
class Named:
    """`silicon`, `isa`: what is reported under that profile, an illegal act or a finding.

    "result": only the result differs; "": nothing, and the result is the same.
    """

    kernel: str
    what: str
    edit: Edit
    silicon: str
    isa: str

    @property
    def name(self) -> str:
        return f"{self.kernel}: {self.what}"


def _find(ptx: str, name: str, number: int, behind: tuple[str, int] | None = None) -> Statement:
    """The so-manieth instruction of this name, counted from the one `behind`."""
    found = statements(ptx)
    if behind is not None:
        start = _find(ptx, *behind).start
        found = [s for s in found if s.start > start]
    return [s for s in found if s.is_a(name)][number]


def _change(name: str, number: int, change: Change, behind: tuple[str, int] | None = None) -> Edit:
    """`change` writes another text for the instruction."""

    def edit(ptx: str) -> str:
        s = _find(ptx, name, number, behind)
        return ptx[: s.start] + change(s) + ptx[s.end :]

    return edit


def _deleted(name: str, number: int, behind: tuple[str, int] | None = None) -> Edit:
    return _change(name, number, lambda s: "", behind)


def _nudged(name: str, number: int, operand: int, amount: int, how: str = "add") -> Edit:
    return _change(name, number, lambda s: s.nudge(operand, amount, how))


def _moved(name: str, number: int, behind: tuple[str, int]) -> Edit:
    """The instruction, put behind another one further down."""

    def edit(ptx: str) -> str:
        s, after = _find(ptx, name, number), _find(ptx, *behind)
        assert s.end <= after.start
        return ptx[: s.start] + ptx[s.end : after.end] + " " + s.text() + ptx[after.end :]

    return edit


def _preceded(name: str, number: int, text: Change) -> Edit:
    return _change(name, number, lambda s: f"{text(s)} {s.text()}")


def _in_turn(*edits: Edit) -> Edit:
    def edit(ptx: str) -> str:
        for each in edits:
            ptx = each(ptx)
        return ptx

    return edit


def _never_waits(number: int) -> Edit:
    """The wait always succeeds."""
    return _change(WAIT, number, lambda s: f"setp.eq.b32 {s.operands[0]}, 0, 0;")


def _asked_once(number: int) -> Edit:
    return _deleted("bra", 0, behind=(WAIT, number))


def _parity(number: int) -> Edit:
    return _nudged(WAIT, number, 2, 1, "xor")


def _second_arriver(ptx: str) -> str:
    """Thread 0 arrives at the accumulator's barrier, though only the commit is counted."""
    barrier = _find(ptx, INIT, 8).operands[0]  # a register of thread 0
    text = (
        " { .reg .pred %first; .reg .b32 %me; .reg .b64 %state; mov.u32 %me, %tid.x;"
        f" setp.eq.u32 %first, %me, 0; @%first mbarrier.arrive.shared.b64 %state, {barrier}; }}"
    )
    return _change("bar.sync", 0, lambda s: s.text() + text)(ptx)


def _half_as_many_barriers(s: Statement) -> str:
    """Slots 2 and 3 take the barriers of slots 0 and 1, which are 16 bytes before theirs."""
    register = s.operands[1 if s.is_a(WAIT) else 0].strip("[]")
    return f"and.b64 {register}, {register}, -17;"


def _stored_lower(special: str, step: int) -> Edit:
    """Threads, or CTAs, of an odd number store `step` bytes lower: where their neighbours do."""

    def edit(ptx: str) -> str:
        base = _find(ptx, "st.global", 0).operands[0].strip("[]")
        text = (
            f"{{ .reg .b32 %odd; .reg .b64 %less; mov.u32 %odd, {special}; and.b32 %odd, %odd, 1;"
            f" mul.wide.u32 %less, %odd, {step}; sub.s64 {base}, {base}, %less; }}"
        )
        return _preceded("st.global", 0, lambda s: text)(ptx)

    return edit


def _swapped_descriptors(s: Statement) -> str:
    d, a, b, *rest = s.operands
    return s.text((d, b, a, *rest))


def _arrives_twice(s: Statement) -> str:
    return f"{s.text()} mbarrier.arrive.shared.b64 {s.operands[0]}, {s.operands[1]};"


def _table(groups: dict[tuple[str, str], list[tuple[str, str, Edit]]]) -> list[Named]:
    return [Named(*row, *says) for says, rows in groups.items() for row in rows]


def _both(says: str) -> tuple[str, str]:
    return says, says


FAULTS = _table({
    _both("illegal deadlock"): [
        ("matmul", "full wait deleted", _never_waits(FULL)),
        ("matmul", "parity of the full wait", _parity(FULL)),
        ("matmul", "parity of the empty wait", _parity(EMPTY)),
        ("matmul", "16 bytes too few expected", _nudged(EXPECT, 0, -1, -16)),
        ("matmul", "16 bytes too many expected", _nudged(EXPECT, 0, -1, 16)),
        ("block-scaled", "16 bytes too few expected", _nudged(EXPECT, 0, -1, -16)),
        ("matmul", "TMA load of B deleted", _deleted(TMA, 1)),
        ("matmul", "commit to empty deleted", _deleted(COMMIT, 0)),
        ("matmul", "commit to the accumulator deleted", _deleted(COMMIT, 1)),
        ("conv-linear", "the epilogue's arrival deleted", _deleted("mbarrier.arrive.shared", 0)),
        ("matmul", "empty[0] counts two", _nudged(INIT, 4, 1, 1)),
        ("matmul", "the producer takes eight slots in turn",
         _change("and", 0, lambda s: s.put(2, "7"), behind=("elect.sync", 0))),
    ],
    _both("illegal mbarrier-over-arrival"): [
        ("matmul", "full arrived at twice", _change(EXPECT, 0, _arrives_twice)),
        ("matmul", "32 producers", _deleted("bra", 0, behind=("elect.sync", 0))),
    ],
    _both("error race"): [
        ("matmul", "empty wait deleted", _never_waits(EMPTY)),
        ("matmul", "full wait asked once", _asked_once(FULL)),
        ("matmul", "empty wait asked once", _asked_once(EMPTY)),
        ("matmul", "commit before the last mma", _moved(MMA, 3, (COMMIT, 0))),
        ("matmul", "a second arriver on the accumulator", _second_arriver),
        ("matmul", "two full barriers for four slots",
         _in_turn(_preceded(EXPECT, 0, _half_as_many_barriers),
                  _preceded(WAIT, FULL, _half_as_many_barriers))),
        ("warp-512", "bar.sync of the main loop deleted", _deleted("bar.sync", 2)),
        ("warp-cp-async", "wait_group one later",
         _change("cp.async.wait_group", 1, lambda s: s.text(("3",)))),
        ("warp-cp-async", "wait_group deleted", _deleted("cp.async.wait_group", 1)),
        ("conv-linear", "wait::st deleted", _deleted("tcgen05.wait::st", 0)),
        ("matmul", "B 128 bytes low", _nudged(TMA, 1, 0, -128)),
        ("matmul", "rows overlap in a CTA", _stored_lower("%laneid", 256)),
        ("matmul", "rows overlap across CTAs", _stored_lower("%ctaid.x", 32768)),
        ("conv-packed", "cp behind its first mma", _moved(COPY, 0, (MMA, 0))),
    ],
    _both("error mbarrier-init-race"): [
        (kernel, "bar.sync behind the init deleted", _deleted("bar.sync", 0))
        for kernel in ("matmul", "warp-96", "warp-512")
    ],
    _both("error undefined-read"): [
        ("matmul", "accumulator wait deleted", _never_waits(ACCUMULATOR)),
        ("matmul", "parity of the accumulator wait", _parity(ACCUMULATOR)),
        ("conv-packed", "cp over the accumulator", _nudged(COPY, 0, 0, -16)),
        ("conv-packed", "cp deleted", _deleted(COPY, 0)),
        ("block-scaled", "cp of scales deleted", _deleted(COPY, 0)),
    ],
    _both("error tensor-memory-leak"): [
        ("matmul", "dealloc deleted", _deleted("tcgen05.dealloc", 0)),
    ],
    _both("illegal tensor-memory-columns"): [
        ("matmul", "D past the allocation", _nudged(MMA, 0, 0, 64)),
        ("matmul", "bar.sync before dealloc deleted", _deleted("bar.sync", 1)),
    ],
    _both("illegal bad-tmem-access"): [
        ("matmul", "ld of another quarter", _nudged("tcgen05.ld", 0, 1, 32 << 16)),
    ],
    _both("illegal out-of-bounds"): [
        ("matmul", "B one slot ahead", _nudged(TMA, 1, 0, 8192)),
        ("matmul", "descriptors of A and B swapped", _change(MMA, 0, _swapped_descriptors)),
    ],
    _both("result"): [
        ("conv-packed", ".ashift dropped",
         _change(MMA, 0, lambda s: s.text(mnemonic=s.mnemonic.replace(".ashift", "")))),
    ],
    ("warning registers-before-wait", "error race"): [
        ("matmul", "wait::ld deleted", _deleted("tcgen05.wait::ld", 0)),
    ],
})  # fmt: skip
"""Each is reported."""
UNPROMISED = _table(
    {
        ("warning missing-fence-after", "error missing-fence-after"): [
            ("matmul", "fence::after of the epilogue deleted", _deleted(AFTER, 1)),
        ],
        ("warning missing-init-fence", "error missing-init-fence"): [
            ("matmul", "fence.mbarrier_init deleted", _deleted("fence.mbarrier_init", 0)),
        ],
    }
)
"""Against the text of PTX ISA, as kernels ship."""
LEGAL = _table(
    {
        _both(""): [
            ("matmul", "fence::after before the mma deleted", _deleted(AFTER, 0)),
            ("matmul", "fence::before deleted", _deleted(BEFORE, 0)),
            ("matmul", "expect_tx behind the loads", _moved(EXPECT, 0, (TMA, 1))),
            ("matmul", "a barrier that nobody waits for counts two", _nudged(INIT, 5, 1, 1)),
            ("matmul", "empty wait of the next slot", _nudged(WAIT, EMPTY, 1, 8)),
        ],
    }
)
"""Another program that is as right; the next slot's commit covers this slot's mma, too."""
