"""Seeded faults in PTX text: a wait gone, a parity changed, a descriptor bit flipped …

A *fault* looks at one instruction and says how it may be damaged; `mutants` applies every fault to
a few instructions of a kernel, chosen by a seed. Lines keep their numbers. The text of a kernel has
to name 64-bit registers %rd…, as Triton and LLVM do.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_STATEMENT = re.compile(
    r"(?<![\w.$%:@!])(?P<guard>@!?%?\w+\s+)?(?P<mnemonic>[a-z][\w:]*(?:\.[\w:]+)*)"
    r"(?P<operands>\s[^;{}]*(?:\{[^{}]*\}[^;{}]*)*)?;"
)


@dataclass(frozen=True)
class Statement:
    """One instruction of the text, between `start` and `end`."""

    start: int
    end: int
    guard: str
    mnemonic: str
    operands: tuple[str, ...]

    def is_a(self, *names: str) -> bool:
        """Whether the mnemonic starts with one of these, word by word."""
        return any(f"{self.mnemonic}.".startswith(f"{name}.") for name in names)

    def text(self, operands: tuple[str, ...] | None = None, mnemonic: str = "") -> str:
        chosen = self.operands if operands is None else operands
        return f"{self.guard}{mnemonic or self.mnemonic} {', '.join(chosen)};"

    def put(self, index: int, operand: str) -> str:
        """The instruction with another operand."""
        return self.text((*self.operands[:index], operand, *self.operands[index + 1 :]))

    def nudge(self, index: int, amount: int, how: str = "add") -> str:
        """The instruction with `amount` added to (or xored into) one operand."""
        index %= len(self.operands)
        operand = self.operands[index]
        if operand.startswith("["):
            return self.put(index, f"{operand[:-1]}+{amount}]")
        if re.fullmatch(r"-?\d+|0x[0-9a-fA-F]+", operand):
            value = int(operand, 0)
            return self.put(index, str(value ^ amount if how == "xor" else value + amount))
        kind = "b64" if operand.startswith("%rd") else "b32"
        change = f"xor.{kind}" if how == "xor" else f"add.s{kind[1:]}"
        before = f".reg .{kind} %seeded; {change} %seeded, {operand}, {amount};"
        return f"{{ {before} {self.put(index, '%seeded')} }}"


def _split(text: str) -> tuple[str, ...]:
    """Operands: at commas outside brackets and braces."""
    parts, depth = [""], 0
    for c in text:
        depth += c in "[{("
        depth -= c in "]})"
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return tuple(p.strip() for p in parts if p.strip())


def statements(ptx: str) -> list[Statement]:
    """The instructions of a module with one function."""
    plain = re.sub(r"//[^\n]*", lambda m: " " * len(m[0]), ptx)
    begin = plain.index("\n{")
    return [
        Statement(m.start(), m.end(), m["guard"] or "", m["mnemonic"], _split(m["operands"] or ""))
        for m in _STATEMENT.finditer(plain, begin)
        if "." in m["mnemonic"] or m["mnemonic"] in ("bra", "ret")
    ]


@dataclass(frozen=True)
class Mutant:
    """`kind`: the class of fault; `what`: the fault in words; `line`: where it was put."""

    subject: str
    kind: str
    what: str
    line: int
    old: str
    ptx: str

    @property
    def name(self) -> str:
        return f"{self.subject}: {self.what}"

    def __str__(self) -> str:
        return f"{self.name} in line {self.line}: {self.old}"


Fault = Callable[[Statement], str | None]
FAULTS: list[tuple[str, str, Fault]] = []


def _fault(kind: str, what: str, fault: Fault) -> None:
    FAULTS.append((kind, what, fault))


def _of(*names: str, at: int = -1, when: str = "") -> Callable[[Statement], bool]:
    """Instructions of these names with at least `at` + 1 operands and `when` in the mnemonic."""
    return lambda s: s.is_a(*names) and len(s.operands) > at and when in s.mnemonic


def _nudged(
    choose: Callable[[Statement], bool], index: int, amount: int, how: str = "add"
) -> Fault:
    return lambda s: s.nudge(index, amount, how) if choose(s) else None


def _gone(choose: Callable[[Statement], bool]) -> Fault:
    return lambda s: "" if choose(s) else None


def _renamed(old: str, new: str, *names: str) -> Fault:
    return lambda s: (
        s.text(mnemonic=s.mnemonic.replace(old, new, 1))
        if s.is_a(*names) and old in s.mnemonic
        else None
    )


def _swapped(choose: Callable[[Statement], bool], first: int, second: int) -> Fault:
    def fault(s: Statement) -> str | None:
        if not choose(s) or s.operands[first] == s.operands[second]:
            return None
        operands = list(s.operands)
        operands[first], operands[second] = operands[second], operands[first]
        return s.text(tuple(operands))

    return fault


def _within(index: int, part: int, amount: int, choose: Callable[[Statement], bool]) -> Fault:
    """`amount` added to one register of a list such as {%r1, %r2}."""

    def fault(s: Statement) -> str | None:
        found = re.search(r"\{([^}]*)\}", s.operands[index]) if choose(s) else None
        if found is None:
            return None
        registers = [r.strip() for r in found[1].split(",")]
        if len(registers) <= part or not registers[part].startswith("%r"):
            return None
        before = f".reg .b32 %seeded; add.s32 %seeded, {registers[part]}, {amount};"
        registers[part] = "%seeded"
        changed = s.operands[index].replace(found[0], f"{{{', '.join(registers)}}}")
        return f"{{ {before} {s.put(index, changed)} }}"

    return fault


def _inverted_guard(s: Statement) -> str | None:
    if not s.guard:
        return None
    guard = s.guard.replace("@!", "@") if "!" in s.guard else s.guard.replace("@", "@!")
    return guard + s.text()[len(s.guard) :]


def _inverted_last(s: Statement) -> str | None:
    """The predicate that says whether an mma adds to D."""
    if not MMA(s) or not re.fullmatch(r"!?%\w+", s.operands[-1]):
        return None
    last = s.operands[-1]
    inverse = last[1:] if last.startswith("!") else f"!{last}"
    register = inverse.lstrip("!")
    if not inverse.startswith("!"):
        return s.put(len(s.operands) - 1, register)
    before = f".reg .pred %seeded; not.pred %seeded, {register};"
    return f"{{ {before} {s.put(len(s.operands) - 1, '%seeded')} }}"


def _half_as_wide(s: Statement) -> str | None:
    """`st.v4 {a, b, c, d}` stores only a and b."""
    if not s.is_a("st.global") or not (found := re.search(r"\.v([24])", s.mnemonic)):
        return None
    values = [v.strip() for v in s.operands[1].strip("{} ").split(",")]
    half = values[: len(values) // 2]
    mnemonic = s.mnemonic.replace(found[0], ".v2" if found[1] == "4" else "")
    stored = f"{{{', '.join(half)}}}" if len(half) > 1 else half[0]
    return s.text((s.operands[0], stored), mnemonic)


def _reversed_vector(s: Statement) -> str | None:
    if not s.is_a("st.global") or not s.operands[1].startswith("{"):
        return None
    values = [v.strip() for v in s.operands[1].strip("{} ").split(",")]
    return None if values == values[::-1] else s.put(1, f"{{{', '.join(values[::-1])}}}")


def _never_loops(s: Statement) -> str | None:
    """A wait asked once and not again; `mutants` applies it to the branches behind waits."""
    return "" if s.is_a("bra") and s.guard else None


MMA = _of("tcgen05.mma", at=4)
COPY = _of("tcgen05.cp", at=1)
LOAD = _of("tcgen05.ld", at=1)
TMA = _of("cp.async.bulk.tensor", at=2, when="shared::")
WAIT = _of("mbarrier.try_wait.parity", "mbarrier.test_wait.parity", at=2)
EXPECT = _of("mbarrier.arrive.expect_tx", "mbarrier.expect_tx")
INIT = _of("mbarrier.init", at=1)
COMMIT = _of("tcgen05.commit")

_fault("deleted wait", "tcgen05.wait deleted", _gone(_of("tcgen05.wait::ld", "tcgen05.wait::st")))
_fault("deleted wait", "cp.async.wait_group deleted", _gone(_of("cp.async.wait_group")))
_fault("deleted wait", "bar.sync deleted", _gone(_of("bar.sync", "barrier.sync")))
_fault("deleted wait", "mbarrier asked once", _never_loops)
_fault("deleted fence", "fence.proxy.async deleted", _gone(_of("fence.proxy.async")))
_fault("deleted fence", "fence.mbarrier_init deleted", _gone(_of("fence.mbarrier_init")))
_fault("deleted fence", "fence::after deleted", _gone(_of("tcgen05.fence::after_thread_sync")))
_fault("deleted fence", "fence::before deleted", _gone(_of("tcgen05.fence::before_thread_sync")))
_fault("parity", "parity of a wait flipped", _nudged(WAIT, 2, 1, "xor"))
for _what, _bit in (
    ("start + 32 bytes", 1),
    ("start + 2 KB", 7),
    ("LBO", 16),
    ("SBO", 33),
    ("version", 46),
    ("base offset", 49),
    ("swizzle, low", 61),
    ("swizzle, middle", 62),
    ("swizzle, high", 63),
):
    _fault("descriptor", f"descriptor of B: {_what}", _nudged(MMA, 2, 1 << _bit, "xor"))
    _fault(
        "descriptor",
        f"descriptor of A: {_what}",
        _nudged(lambda s: MMA(s) and s.operands[1].startswith("%rd"), 1, 1 << _bit, "xor"),
    )
    _fault("descriptor", f"descriptor of cp: {_what}", _nudged(COPY, 1, 1 << _bit, "xor"))
for _what, _bit in (
    ("sparse", 2),
    ("saturate", 3),
    ("type of D", 4),
    ("type of A", 7),
    ("type of B", 10),
    ("negate A", 13),
    ("negate B", 14),
    ("major of A", 15),
    ("major of B", 16),
    ("N", 17),
    ("N doubled or halved", 20),
    ("M", 26),
    ("M, other", 27),
    ("max shift", 30),
):
    _fault("instruction descriptor", f"idesc: {_what}", _nudged(MMA, 3, 1 << _bit, "xor"))
for _part, _bit in ((0, 0), (0, 31), (1, 12), (2, 31), (3, 5)):
    _fault(
        "lane mask",
        f"lane mask, word {_part}, bit {_bit}",
        _within(4, _part, -(1 << 31) if _bit == 31 else 1 << _bit, _of("tcgen05.mma", at=5)),
    )
for _amount in (16, -16, 1 << 12):
    _fault("tx count", f"expect_tx {_amount:+}", _nudged(EXPECT, -1, _amount))
_fault(
    "swapped operands",
    "A and B swapped",
    lambda s: _swapped(MMA, 1, 2)(s) if s.operands[1:2] != ("",) else None,
)
_fault("swapped operands", "operands of sub swapped", _swapped(_of("sub", at=2), 1, 2))
_fault(
    "swapped operands",
    "operands of setp swapped",
    lambda s: None if s.is_a("setp.eq", "setp.ne") else _swapped(_of("setp", at=2), 1, 2)(s),
)
_fault("swapped operands", "registers of ld and st swapped", _reversed_vector)
_fault("tensor memory", "tcgen05.ld: column + 1", _nudged(LOAD, 1, 1))
_fault("tensor memory", "tcgen05.ld: lane + 1", _nudged(LOAD, 1, 1 << 16))
_fault("tensor memory", "tcgen05.ld: lane + 32", _nudged(LOAD, 1, 32 << 16))
_fault("tensor memory", "tcgen05.cp: column + 4", _nudged(COPY, 0, 4))
_fault("tensor memory", "mma: D, column + 8", _nudged(MMA, 0, 8))
_fault(
    "tensor memory",
    "mma: A in tensor memory, column + 8",
    lambda s: s.nudge(1, 8) if MMA(s) and s.operands[1].startswith("[") else None,
)
_fault(
    "tensor memory",
    "alloc of half the columns",
    lambda s: s.put(1, "32") if s.is_a("tcgen05.alloc") else None,
)
_fault(
    "tensor memory",
    "dealloc of other columns",
    lambda s: s.put(1, "32") if s.is_a("tcgen05.dealloc") else None,
)
_fault("tensor memory", "dealloc deleted", _gone(_of("tcgen05.dealloc")))
_fault("tensor memory", "ashift dropped", _renamed(".ashift", "", "tcgen05.mma"))
_fault("other barrier", "commit to the next mbarrier", _nudged(COMMIT, 0, 8))
_fault("other barrier", "commit to the one before", _nudged(COMMIT, 0, -8))
_fault("other barrier", "commit deleted", _gone(COMMIT))
_fault("other barrier", "wait for the next mbarrier", _nudged(WAIT, 1, 8))
_fault("other barrier", "TMA signals the next mbarrier", _nudged(TMA, 2, 8))
_fault("coordinate", "TMA: into 128 bytes further on", _nudged(TMA, 0, 128))
for _part in range(4):
    _fault("coordinate", f"TMA: coordinate {_part} + 1", _within(1, _part, 1, TMA))
_fault("arrive count", "mbarrier.init: count + 1", _nudged(INIT, 1, 1))
_fault("arrive count", "mbarrier.init deleted", _gone(INIT))
_fault(
    "arrive count",
    "arrive deleted",
    _gone(lambda s: s.is_a("mbarrier.arrive") and s.operands[0].startswith(("_", "%rd"))),
)
_fault("predicate", "guard inverted", lambda s: None if s.is_a("bra") else _inverted_guard(s))
_fault("predicate", "branch inverted", lambda s: _inverted_guard(s) if s.is_a("bra") else None)
_fault("predicate", "mma: whether D is added, inverted", _inverted_last)
_fault(
    "predicate",
    "setp: the opposite",
    lambda s: (
        s.text(
            mnemonic=re.sub(
                r"^setp\.(\w\w)",
                lambda m: (
                    "setp."
                    + {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}[m[1]]
                ),
                s.mnemonic,
            )
        )
        if s.is_a("setp")
        else None
    ),
)
_fault("rounding", "cvt.rn rounds to zero", _renamed(".rn", ".rz", "cvt"))
_fault("rounding", "fma.rn rounds to zero", _renamed(".rn", ".rz", "fma"))
_fault("global access", "st.global: offset + 4 bytes", _nudged(_of("st.global", at=1), 0, 4))
_fault("global access", "st.global: offset + 16 bytes", _nudged(_of("st.global", at=1), 0, 16))
_fault("global access", "st.global: half as wide", _half_as_wide)
_fault("global access", "ld.global: offset + 16 bytes", _nudged(_of("ld.global", at=1), 1, 16))
_fault(
    "global access",
    "cp.async: from 16 bytes further on",
    lambda s: s.nudge(1, 16) if s.is_a("cp.async.cg", "cp.async.ca") else None,
)
_fault("shared access", "st.shared: offset + 16 bytes", _nudged(_of("st.shared", at=1), 0, 16))
_fault("shared access", "ld.shared: offset + 16 bytes", _nudged(_of("ld.shared", at=1), 1, 16))
_fault(
    "shared access",
    "cp.async: to 16 bytes further on",
    lambda s: s.nudge(0, 16) if s.is_a("cp.async.cg", "cp.async.ca") else None,
)


def _waits(found: list[Statement]) -> set[int]:
    """Numbers of the branches that repeat an mbarrier's wait."""
    near: set[int] = set()
    for n, s in enumerate(found):
        if WAIT(s):
            near |= {k for k in range(n + 1, min(n + 3, len(found))) if found[k].is_a("bra")}
    return near


def mutants(subject: str, ptx: str, each: int = 1, seed: int = 0) -> Iterator[Mutant]:
    """Every fault, put into up to `each` instructions of the kernel."""
    found = statements(ptx)
    waits = _waits(found)
    for kind, what, fault in FAULTS:
        chosen = [s for n, s in enumerate(found) if what != "mbarrier asked once" or n in waits]
        edits = [(s, new) for s in chosen if (new := fault(s)) is not None and new != s.text()]
        picks = random.Random(f"{seed}/{subject}/{what}").sample(edits, min(each, len(edits)))
        for s, new in picks:
            old = ptx[s.start : s.end]
            yield Mutant(
                subject,
                kind,
                what,
                ptx.count("\n", 0, s.start) + 1,
                " ".join(old.split()),
                ptx[: s.start] + new + "\n" * old.count("\n") + ptx[s.end :],
            )
