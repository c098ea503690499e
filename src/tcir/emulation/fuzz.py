"""Fuzz: a program's asynchronous acts as late as the ISA allows (PTX ISA 9.7.16.6).

A `tcgen05.ld` delivers at its `tcgen05.wait::ld`, and until then its registers hold `GARBAGE`; a
`tcgen05.st` writes at its `tcgen05.wait::st`, or when its thread ends. Which wait that is: the next
one, if no label or branch is in between; else whichever the thread comes to, which a predicate of
the access knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tcir.emulation.sequence import PREFIX
from tcir.emulation.source import FunctionSource

GARBAGE = "0x7fb00b1e"
"""A NaN that no sum makes."""
SEED = f"{PREFIX}seed"
"""The variable of the module that holds the seed."""
PAUSED = ("ld", "st", "atom", "red", "mbarrier", "bar", "barrier", "cp", "multimem", "tcgen05",
          "griddepcontrol", "clusterlaunchcontrol", "fence", "membar")  # fmt: skip
"""Instructions before which a warp may be late: of memory and of synchronisation."""
_OWN = (".param", ".local", ".const")
_ENDS = ("bra", "brx", "ret", "exit", "call", "trap")


@dataclass
class Late:
    """A `tcgen05.ld` or `st` until it is delivered: in registers of its function.

    place: of its first word. flag: it is pending. copies: what a store writes. deliver: its
    instructions, without their guard; filled where the access is rewritten.
    """

    number: int
    load: bool
    place: str = ""
    flag: str = ""
    copies: list[str] = field(default_factory=list)
    deliver: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place, self.flag = (f"%{PREFIX}{word}{self.number}" for word in ("place", "late"))

    def copy(self) -> str:
        """A register of the function."""
        self.copies.append(f"%{PREFIX}copy{self.number}_{len(self.copies)}")
        return self.copies[-1]

    def declarations(self) -> str:
        """At the top of the function."""
        registers = f".reg .b64 {self.place}; .reg .pred {self.flag};"
        if self.copies:
            registers += f" .reg .b32 {', '.join(self.copies)};"
        return f"{registers} setp.ne.u32 {self.flag}, 0, 0;"

    def delivery(self) -> list[str]:
        """Instructions at the wait."""
        return [
            f"@{self.flag} {each}" for each in [*self.deliver, f"setp.ne.u32 {self.flag}, 0, 0"]
        ]


@dataclass
class Plan:
    """Late accesses of one function, by number of their instruction; and the accesses that each
    wait, or end of a thread, delivers."""

    late: dict[int, Late] = field(default_factory=dict)
    at: dict[int, list[Late]] = field(default_factory=dict)


def plan(source: FunctionSource, first: int) -> Plan:
    """first: the number of the first access, of those of all functions."""
    words = [i.mnemonic.split(".") for i, _, _ in source.instructions]
    waits = {
        load: [
            n for n, each in enumerate(words) if each[:3] == ["tcgen05", f"wait::{kind}", "sync"]
        ]
        for load, kind in ((True, "ld"), (False, "st"))
    }
    entry = source.function.entry
    ends = [n for n, each in enumerate(words) if entry and each[0] in ("exit", "ret")]
    found = Plan()
    for n, each in enumerate(words):
        if each[0] != "tcgen05" or each[1] not in ("ld", "st"):
            continue
        load = each[1] == "ld"
        if not entry and not waits[load]:
            continue  # whoever calls the function waits
        late = found.late[n] = Late(first + len(found.late), load)
        following = next((w for w in waits[load] if w > n), None)
        wanted = waits[load] + ([] if load else ends)
        if following is not None and not any(
            m in source.labels or words[m][0] in _ENDS for m in range(n + 1, following + 1)
        ):
            wanted = [following]
        for at in wanted:
            found.at.setdefault(at, []).append(late)
    return found


def pauses(mnemonic: str) -> bool:
    """Whether a warp may be late before it."""
    words = mnemonic.split(".")
    return words[0] in PAUSED and not any(each in mnemonic for each in _OWN)
