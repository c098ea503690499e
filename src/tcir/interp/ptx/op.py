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
    """Raised for an instruction, or a modifier of an instruction, that tcir does not execute."""

    def __init__(self, instruction: str, site: Site, why: str) -> None:
        super().__init__(f"{site}: {why}")
        self.instruction = instruction
        self.line = site.line
        self.site = site
        self.why = why


@dataclass(frozen=True)
class Compute:
    """The computation results = fn(*sources) of an instruction, lane by lane. `fn` takes arrays of
    any number of lanes, and returns a tuple if there are several results.

    sources:  (slot, view) of each operand; the view `PREDICATE` stands for a predicate, whose
              values are bool
    results:  (slot, view) of each result, likewise
    flips:    predicate sources to negate
    products: multiplications per lane, for the counters
    across:   lanes of a warp exchange values, so `fn` takes whole warps of 32 lanes
    divisor:  position of the source that makes the result undefined where it is 0; -1: none does
    moved:    number of leading sources whose bits are only moved; the other sources select where
              to. The undefined bits of a result do not depend on the values of the leading sources.
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
    """A wait for all groups of copies or of wgmma except the last `pending` groups; None: a wait
    for all copies.
    """

    pending: int | None


@dataclass(slots=True)
class Op:
    """One decoded instruction.

    kind:    how the interpreter treats the instruction
    run:     function that is called once per executed warp instruction
    guard:   slot of the guard predicate, -1 for none; negate: the guard is negated (`@!%p`)
    target:  target of a BRANCH; targets: all targets of a jump
    aligned: all live lanes of the warp must execute the instruction together
    members: slot of the member mask, for the kind MEMBERS
    idle:    the instruction is a wait in a loop that only waits, or a polled load; awaited: the
             condition of that load (`tcir.interp.ptx.watch.polling`)
    gives_up: the instruction is a wait whose loop may end although the wait never succeeds
             (`tcir.interp.ptx.idle`)
    heeded:  whether another instruction reads the answer of this wait
    update:  set for a strong load and a strong store that may together update a word (a
             read-modify-write); follows: for such a load, a function that finds its store, by lane
             and value
             (`tcir.interp.ptx.watch.following`)
    meets:   the effect depends on the timing of other threads (`tcir.interp.ptx.communication`)
    results: the slots that the instruction writes, if it only computes; an undefined guard then
             makes them undefined and is no error
    own:     `run` as it was decoded; `run` differs from it if the instruction is watched
    touches: registers of wgmma that `run` reports

    `tcir.interp.ptx.lockstep` uses these fields: name is the registered name; spelling is the whole
    instruction except its operands; reads and writes are the slots of the operands; compute is the
    function, if the instruction only computes; form describes the operands, if it moves data.
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
        """Positions of the instructions that may follow the instruction at `at`; the end of the
        program counts as a position.
        """
        if self.kind == BRANCH:
            yield self.target
        if self.kind == INDEXED:
            yield from self.targets
        if self.kind not in (BRANCH, EXIT, INDEXED) or self.guard >= 0:
            yield at + 1
