"""Digest of the instructions that the warps of a CTA execute, independent of the order in which the
warps take turns.
"""

from __future__ import annotations

from collections.abc import Callable

from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.op import BRANCH, TRY_WAIT, WAIT, Op
from tcir.interp.ptx.program import DecodedEntry


def polling(program: DecodedEntry) -> frozenset[int] | None:
    """Positions of the instructions that a warp may repeat until a wait succeeds: waits, branches,
    and computations on the answers of waits.

    Returns None if an answer is also used in another way, so that a result may depend on the number
    of repetitions.
    """
    answers = {s for op in program.code if op.kind == TRY_WAIT for s in op.writes}
    while more := {
        s for op in program.code if op.results is not None and _reads(op, answers)
        for s in op.results
    } - answers:  # fmt: skip
        answers |= more
    steer = frozenset(pc for pc, op in enumerate(program.code) if _reads(op, answers))
    if any(program.code[pc].results is None and program.code[pc].kind != BRANCH for pc in steer):
        return None
    waits = (pc for pc, op in enumerate(program.code) if op.kind in (TRY_WAIT, WAIT, BRANCH))
    return steer.union(waits)


def _reads(op: Op, slots: set[int]) -> bool:
    return op.guard in slots or not slots.isdisjoint(op.reads)


_BASE, _MODULUS = 0x9E3779B97F4A7C15F39CC0605CEDC835, (1 << 127) - 1


class LaneStreams:
    """Digest of the instructions of each lane of a warp, computed as the value of a polynomial."""

    def __init__(self, interpreter: WarpInterpreter, polling: frozenset[int]) -> None:
        self._state, self._polling = interpreter.divergence, polling
        self._lanes = [0] * 32
        self._mask = 0
        self._value, self._power = 0, 1  # of what these lanes have executed since it changed

    def note(self) -> None:
        """Called before every instruction."""
        state = self._state
        if state.pc in self._polling:
            return
        if state.mask != self._mask:
            self._fold()
            self._mask = state.mask
        self._value = (self._value * _BASE + state.pc + 1) % _MODULUS
        self._power = self._power * _BASE % _MODULUS

    def _fold(self) -> None:
        for lane in LANE_INDICES[self._mask].tolist():
            self._lanes[lane] = (self._lanes[lane] * self._power + self._value) % _MODULUS
        self._value, self._power = 0, 1

    def values(self) -> tuple[int, ...]:
        """Digest of each lane."""
        self._fold()
        return tuple(self._lanes)


class Stream:
    """Digests of the instructions of each lane of a CTA, except instructions executed while
    polling.
    """

    def __init__(self, polling: frozenset[int]) -> None:
        self._polling = polling
        self._warps: dict[int, LaneStreams] = {}

    def of(self, interpreter: WarpInterpreter) -> Callable[[], None]:
        """Returns the function that has to be called before every instruction of a warp."""
        lanes = LaneStreams(interpreter, self._polling)
        self._warps[interpreter.warp.index] = lanes
        return lanes.note

    def digest(self) -> tuple[tuple[int, ...], ...]:
        """Digest of all lanes of the CTA; CTAs with equal instructions have equal digests."""
        return tuple(lanes.values() for _, lanes in sorted(self._warps.items()))
