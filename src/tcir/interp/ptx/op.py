"""Decoded instructions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcir.interp.ptx.kernels.derived import DerivedKernel, kernels
from tcir.interp.ptx.registers import dtype_of
from tcir.interp.ptx.syntax import Site
from tcir.interp.ptx.warp import Warp
from tcir.machine.order.strong import Awaited, Put, Update
from tcir.threads import cached_property

#: How the interpreter treats an instruction.
PLAIN, BRANCH, EXIT, BLOCKING, TRY_WAIT, INDEXED, WAIT, MEMBERS = range(8)

Blocking = Generator[Any, Any, None]
"""Type of an agent's blocking methods: the machine's scheduler drives the generator."""
Run = Callable[[Warp, int], Any]
"""Executes an instruction for the lanes of a mask.

PLAIN: returns nothing. BLOCKING: a `Blocking`. TRY_WAIT: the mbarrier phases (address, parity) that
are not complete. WAIT: whether it need not wait longer. INDEXED: (target, lanes) of each jump.
MEMBERS: returns nothing; called once for each member mask.
"""


def no_effect(w: Warp, m: int) -> None:
    """Does nothing, for a hint, a branch or an exit."""


def synchronise_lanes(w: Warp, m: int) -> None:
    """bar.warp.sync: orders the earlier accesses of these lanes before their later ones."""
    w.agent.lanes.synchronise(m)


class Incomplete(Exception):
    """An instruction, or a modifier of it, that nothing here executes."""

    def __init__(self, instruction: str, site: Site, why: str) -> None:
        super().__init__(f"{site}: {why}")
        self.instruction = instruction
        self.line = site.line
        self.site = site
        self.why = why


@dataclass(frozen=True)
class Compute:
    """results = fn(*sources), lane by lane: `fn` takes arrays of any number of lanes.

    sources, results: (slot, view) each, with `PREDICATE` as the view of a predicate, whose values
    are bool. flips: predicate sources to negate. products: multiplications per lane, for the
    counters. With several results `fn` returns a tuple. across: lanes of a warp exchange values, so
    `fn` takes whole warps, 32 lanes each. divisor: the position of the source that makes the result
    undefined where it is 0; -1: none does. moved: number of leading sources whose bits are only
    moved; the other sources select where to. The undefined bits of a result do not depend on the
    values of the leading sources.
    """

    fn: Callable[..., np.ndarray | tuple[np.ndarray, ...]]
    sources: tuple[tuple[int, int], ...]
    results: tuple[tuple[int, int], ...]
    flips: tuple[int, ...] = ()
    products: int = 0
    across: bool = False
    divisor: int = -1
    moved: int = 0

    @cached_property
    def dtypes(self) -> tuple[tuple[np.dtype, ...], tuple[np.dtype, ...]]:
        """Dtypes of the sources and of the results."""
        sources, results = (
            tuple(dtype_of(view) for _, view in operands)
            for operands in (self.sources, self.results)
        )
        return sources, results

    @cached_property
    def kernels(self) -> tuple[DerivedKernel, ...] | None:
        """Machine code of the function, one kernel for each result; None if only numpy
        computes it."""
        return None if self.across else kernels(self.fn, *self.dtypes)


@dataclass(frozen=True)
class PendingGroups:
    """A wait for all but the last `pending` groups of copies or wgmma; None: for all copies."""

    pending: int | None


@dataclass(slots=True)
class Op:
    """One decoded instruction.

    kind: how the interpreter treats it. run: called once per executed warp instruction.
    guard: slot of the guard predicate, -1 for none; negate: `@!%p`.
    target: target of a BRANCH; targets: all targets of a jump.
    aligned: all live lanes of the warp must execute it together. members: slot of the member mask
        of a MEMBERS.
    idle: a wait whose loop only waits, or a polled load; awaited: the condition of that load
        (`tcir.interp.ptx.watch.polling`); gives_up: a wait whose loop may end although the wait
        never succeeds (`tcir.interp.ptx.idle`). heeded: whether an instruction reads a wait's
        answer.
    update: the update that a strong load or store may belong to; follows: the store after such a
        load, by lane and value (`tcir.interp.ptx.watch.following`).
    meets: its effect depends on the timing of other threads (`tcir.interp.ptx.communication`).
    results: the slots it writes, if it only computes: an undefined guard makes them undefined and
        is no error.
    own: `run` as it was decoded; they differ where something watches the instruction. touches:
        registers of wgmma that `run` reports.

    Fields that `tcir.interp.ptx.lockstep` uses: the registered name; the spelling of the whole
    instruction except its operands; the slots that it reads and writes as operands; compute: its
    function, if it only computes; form: its operands, if it moves data.
    """

    kind: int
    run: Run
    site: Site
    guard: int = -1
    negate: bool = False
    target: int = -1
    targets: tuple[int, ...] = ()
    aligned: bool = False
    members: int = -1
    idle: bool = False
    awaited: Callable[[Warp], Awaited] | None = None
    gives_up: bool = False
    heeded: bool = True
    update: Update | None = None
    follows: Callable[[Warp, int, bytes], Put | None] | None = None
    meets: bool = False
    results: tuple[int, ...] | None = None
    own: Run | None = None
    touches: tuple[int, ...] = ()
    name: str = ""
    spelling: str = ""
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    compute: Compute | None = None
    form: object = None

    def following(self, at: int) -> Iterator[int]:
        """Successors of the instruction at `at`; one may be the end."""
        if self.kind == BRANCH:
            yield self.target
        if self.kind == INDEXED:
            yield from self.targets
        if self.kind not in (BRANCH, EXIT, INDEXED) or self.guard >= 0:
            yield at + 1
