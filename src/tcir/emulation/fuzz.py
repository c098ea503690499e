"""Fuzz: makes a program's asynchronous operations complete as late as the ISA allows (PTX ISA
9.7.16.6).

A `tcgen05.ld` delivers its words at its `tcgen05.wait::ld`, and until then its registers contain
`GARBAGE`. A `tcgen05.st` writes at its `tcgen05.wait::st`, or when its thread ends. The wait is the
next one in the text if no label or branch is in between. Otherwise it is the first wait that the
thread executes; a predicate of the access records that the access is pending.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tcir.emulation.sequence import PREFIX
from tcir.emulation.source import FunctionSource

GARBAGE = "0x7fb00b1e"
"""A NaN that no sum produces."""
SEED = f"{PREFIX}seed"
"""Variable of the module that holds the seed."""
PAUSED = ("ld", "st", "atom", "red", "mbarrier", "bar", "barrier", "cp", "multimem", "tcgen05",
          "griddepcontrol", "clusterlaunchcontrol", "fence", "membar")  # fmt: skip
"""Instructions of memory and synchronisation, before which a warp may be delayed."""
_OWN = (".param", ".local", ".const")
_ENDS = ("bra", "brx", "ret", "exit", "call", "trap")


@dataclass
class Late:
    """A `tcgen05.ld` or `st` that is pending until its wait delivers it; its state is in registers
    of the function.

    place:   register with the address of the first word of the access
    flag:    predicate that is true while the access is pending
    copies:  registers with the words that a store writes
    deliver: instructions that complete the access, without their guard; filled in when the access
        is rewritten
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
        """Adds a register of the function for a word of the access."""
        self.copies.append(f"%{PREFIX}copy{self.number}_{len(self.copies)}")
        return self.copies[-1]

    def declarations(self) -> str:
        """Declarations and initialisation at the top of the function."""
        registers = f".reg .b64 {self.place}; .reg .pred {self.flag};"
        if self.copies:
            registers += f" .reg .b32 {', '.join(self.copies)};"
        return f"{registers} setp.ne.u32 {self.flag}, 0, 0;"

    def delivery(self) -> list[str]:
        """Instructions that deliver the access at its wait."""
        return [
            f"@{self.flag} {each}" for each in [*self.deliver, f"setp.ne.u32 {self.flag}, 0, 0"]
        ]


@dataclass
class LateAccesses:
    """Accesses of one function that take effect later than they are issued.

    late: these accesses, by the number of their instruction
    at:   the accesses that take effect at a wait or an exit, by the number of the wait or exit
    """

    late: dict[int, Late] = field(default_factory=dict)
    at: dict[int, list[Late]] = field(default_factory=dict)


def plan(source: FunctionSource, first: int) -> LateAccesses:
    """Finds the late accesses of a function, and the waits that deliver them.

    first: number that the first access gets; accesses are numbered over all functions
    """
    words = [i.mnemonic.split(".") for i, _, _ in source.instructions]
    waits = {
        load: [
            n for n, each in enumerate(words) if each[:3] == ["tcgen05", f"wait::{kind}", "sync"]
        ]
        for load, kind in ((True, "ld"), (False, "st"))
    }
    entry = source.function.entry
    ends = [n for n, each in enumerate(words) if entry and each[0] in ("exit", "ret")]
    found = LateAccesses()
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
    """Whether a warp may be delayed before an instruction."""
    words = mnemonic.split(".")
    return words[0] in PAUSED and not any(each in mnemonic for each in _OWN)
