"""Records the operations that a leader issues to the machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcir.machine import Agent, Cta, ElementAddresses
from tcir.machine.memory.effects import Effect
from tcir.machine.order.clocks import Access

Operands = tuple[Any, ...]
Operation = Callable[..., Any]
"""An operation of a unit of an agent."""
Key = tuple[object, ...]

KNOWN = {
    "": ("drain", "fence"),
    "barrier": ("sync",),
    "bulk": ("commit", "wait"),
    "grid_control": ("wait",),
    "mbarrier": ("arrive", "init", "test", "wait"),
    "memory": ("load", "store"),
    "tensor_core": ("commit", "cp", "mma", "mma_block_scale", "shift"),
    "tma": ("load", "store"),
    "tmem": ("alloc", "dealloc", "ld", "relinquish", "st", "wait"),
}
"""Unit -> operations that followers can execute; "": operations of the agent itself."""


@dataclass
class UnitCall:
    """One operation that an agent issued to a unit of the machine.

    key:    the operands that must be the same in a follower
    turns:  how often the operation yielded; None: it cannot block
    result: its result, or the address that an allocation wrote
    effect: effect of an operation of the tensor core
    access: access of a write to global memory, for the machine's record
    """

    unit: str
    name: str
    key: Key
    site: object = None
    turns: int | None = None
    result: object = None
    effect: Effect | None = None
    access: Access | None = None


def key_of(unit: str, name: str, operands: Operands, named: Mapping[str, object]) -> Key:
    """Returns the operands of an operation except those that may differ between CTAs, which are
    data and positions in global memory.
    """
    rest = tuple(named.items())
    match unit, name:
        case "memory", "load" | "store":
            space, addresses, what = operands
            what = what if name == "load" else what.shape[1]
            return (space, what, rest) if space == "global" else (space, what, rest, addresses)
        case "tma", _:
            place, tensor, *others = operands
            offsets = tuple(tensor.im2col_offsets)
            return place, tensor.tensor_map, tensor.mode, offsets, tensor.map_at, *others, rest
        case "tmem", "st":
            address, shape, num, _, *others = operands
            return address, shape, num, *others, rest
        case "tensor_core", _:
            return *map(_plain, operands), rest
    return *operands, rest


def _plain(operand: object) -> object:
    if isinstance(operand, ElementAddresses):
        return operand.addresses, operand.base
    return operand


def alike(a: Key, b: Key) -> bool:
    """Whether operands are equal; most equal arrays are the same object, which is tested first."""
    try:
        return a == b
    except ValueError:  # of arrays that are not
        return len(a) == len(b) and all(map(_alike, a, b))


def _alike(a: object, b: object) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return alike(a, b)
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and np.array_equal(a, b)
    return not isinstance(b, np.ndarray) and bool(a == b)


class Trace:
    """Trace of one leader.

    calls: operations of each agent, in order
    turns: agents in the order in which they ran, and whether each ended in that turn
    why:   reason why there is no trace; "" if there is one
    """

    def __init__(self, cta: Cta) -> None:
        self.cta = cta
        self.calls: list[list[UnitCall]] = []
        self.turns: list[tuple[int, bool]] = []
        self.why = ""
        self._open: UnitCall | None = None

    @property
    def streams(self) -> list[list[tuple[str, str, object]]]:
        """Operations of each agent and their locations, independent of the order in which agents
        ran.
        """
        return [[(call.unit, call.name, call.site) for call in calls] for calls in self.calls]

    def agent(self, agent: Agent) -> tuple[int, RecordedAgent]:
        """Wraps an agent of the leader to record its operations; returns its number and the
        wrapper."""
        self.calls.append([])
        return len(self.calls) - 1, RecordedAgent(agent, self, self.calls[-1])

    def follow(
        self, number: int, body: Generator[object, object, None]
    ) -> Generator[object, object, None]:
        """Runs the body of an agent and records each turn."""
        while True:
            place = len(self.turns)
            self.turns.append((number, False))
            try:
                item = next(body)
            except StopIteration:
                self.turns[place] = number, True
                return
            yield item

    def effect(self, effect: Effect | None) -> None:
        """Records the effect of the current operation of the tensor core."""
        if effect is None or self._open is None:
            self.why = self.why or "an operation of the tensor core without an effect on arrays"
        else:
            self._open.effect = effect

    def call(self, agent: Agent, calls: list[UnitCall], unit: str, name: str) -> Operation:
        """Returns an operation of a unit, wrapped so that each call is recorded."""
        method = getattr(getattr(agent, unit) if unit else agent, name)

        def operation(*operands: object, **named: object) -> object:
            call = UnitCall(unit, name, key_of(unit, name, operands, named), named.get("site"))
            call.access = _access(agent, call, named)
            calls.append(call)
            self._open = call
            result = method(*operands, **named)
            self._open = None
            if isinstance(result, Generator):
                call.turns = 0
                return self._blocking(call, operands, result)
            call.result = result if unit == "mbarrier" else None
            return result

        return operation

    def _blocking(
        self, call: UnitCall, operands: Operands, steps: Iterator[object]
    ) -> Iterator[object]:
        assert call.turns is not None
        for step in steps:
            call.turns += 1
            yield step
        if call.name == "alloc":
            place = operands[0] - self.cta.window
            call.result = self.cta.smem.data[place : place + 4].copy()


def _access(agent: Agent, call: UnitCall, named: Mapping[str, object]) -> Access | None:
    if (call.unit, call.name) == ("tma", "store"):
        bulk = agent.bulk
        return Access(bulk.writes, bulk.number, "TMA store", named["site"], "async")
    if (call.unit, call.name, call.key[0]) == ("memory", "store", "global"):
        return agent.own_access("generic", named["site"])
    return None


class RecordedAgent:
    """An agent of the leader, as the rules of this level use it: every operation is recorded."""

    def __init__(self, agent: Agent, trace: Trace, calls: list[UnitCall]) -> None:
        self._agent, self._trace, self._calls = agent, trace, calls
        self.cta, self.machine = agent.cta, agent.machine

    @property
    def warp(self) -> int:
        """See `Agent`."""
        return self._agent.warp

    @warp.setter
    def warp(self, warp: int) -> None:
        self._agent.warp = warp

    def __getattr__(self, name: str) -> object:
        if name in KNOWN[""]:
            return self._trace.call(self._agent, self._calls, "", name)
        if name in KNOWN:
            unit = RecordedUnit(self._agent, self._trace, self._calls, name)
            self.__dict__[name] = unit
            return unit
        self._trace.why = self._trace.why or f"nothing follows the unit {name}"
        return getattr(self._agent, name)


class RecordedUnit:
    """A unit of a `RecordedAgent`."""

    def __init__(self, agent: Agent, trace: Trace, calls: list[UnitCall], unit: str) -> None:
        self._agent, self._trace, self._calls, self._unit = agent, trace, calls, unit

    def __getattr__(self, name: str) -> object:
        if name in KNOWN[self._unit]:
            call = self._trace.call(self._agent, self._calls, self._unit, name)
            self.__dict__[name] = call
            return call
        self._trace.why = self._trace.why or f"nothing follows {self._unit}.{name}"
        return getattr(getattr(self._agent, self._unit), name)
