"""A machine with its usual setup, for small programs: one body (a generator) per warp.

`Bench.run` puts a kernel around the bodies: mbarriers, operands and tensor memory before, a barrier
and dealloc after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tcir.machine import (
    Agent,
    ElementAddresses,
    Machine,
    MachineError,
    TensorMap,
    TensorOperand,
    TmemAddr,
)
from tcir.machine.assumptions import Assumptions
from tcir.run_options import RunOptions

from .issue import issue_mma

ORDERS = (None, *range(10))
WORD, WORD2, BARS, A, A2, B, OUT = 32, 36, 64, 1024, 8192, 16384, 20480
"""Shared memory: two words for allocated addresses, mbarriers, two A tiles, B, one more tile."""
D, D2, SLAB = 0, 32, 64
"""Columns of two accumulators, and of an A in tensor memory."""
TILE = 128 * 32
N = 16


def bar(i: int) -> int:
    """Address of mbarrier i."""
    return BARS + 8 * i


def rows(count: int, base: int, step: int = 2) -> Any:
    """Addresses of a tile of rows of 32 bytes, one after the other: int64 [count, elements]."""
    table = base + 32 * np.arange(count)[:, None] + np.arange(0, 32, step)
    table.flags.writeable = False
    return table


def halves(shape: tuple[int, ...], first: int) -> Any:
    """Small f16 values, none of them zero."""
    return (np.arange(np.prod(shape)) % 61 + first).reshape(shape).astype(np.float16)


A_VALUES, A2_VALUES, B_VALUES = halves((128, 16), 1), halves((128, 16), 3), halves((N, 16), 2)


def fill(agent: Agent, base: int, values: Any) -> None:
    """Ordinary stores to shared memory."""
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1, 16)
    agent.memory.store("shared", base + 16 * np.arange(len(raw)), raw, site="fill")


def at_column_0(
    seed: int | None = None, assumptions: Assumptions | None = None, **options: Any
) -> RunOptions:
    """Options under which the first allocation is at column 0, unless `assumptions` say where."""
    known = assumptions or Assumptions()
    if known.alloc_place == Assumptions.alloc_place:
        known = replace(known, alloc_place="lowest")
    return RunOptions(seed, assumptions=known, **options)


def finish(agent: Agent, i: int) -> Any:
    """Everything this thread gave to the tensor core is complete."""
    agent.tensor_core.commit(bar(i), site=f"commit {i}")
    yield from agent.mbarrier.wait(bar(i), 0, site=f"wait {i}")
    agent.fence("tcgen05.after", site="after")


def mma(agent: Agent, d: int = D, a: Any = A, n: int = N, **flags: Any) -> None:
    """One mma of a shared or tensor-memory A and of B."""
    flags = {"enable_input_d": False, "site": "mma"} | flags
    operand = ElementAddresses(rows(128, a)) if isinstance(a, int) else a
    b = ElementAddresses(rows(n, B))
    issue_mma(agent, d, operand, b, 128, n, "f16", "f16", **flags)


def slab(agent: Agent, base: int = A, column: int = SLAB) -> TmemAddr:
    """A tile copied to tensor memory."""
    agent.tensor_core.cp(column, ElementAddresses(rows(128, base, step=1)), site="cp")
    return TmemAddr(column)


class Bench:
    """One machine, and what the bodies saw."""

    def __init__(self, seed: int | None = None, grid: int = 1, **options: Any) -> None:
        self.machine = Machine(
            grid=(grid, 1, 1),
            block=(128, 1, 1),
            dynamic_smem=32768,
            options=at_column_0(seed, **options),
        )
        self.source = np.arange(1, TILE // 2 + 1, dtype=np.uint16).reshape(128, 16)
        self.target = np.zeros((128, 16), np.uint16)
        self.source_at = self.machine.memory.bind(self.source)
        self.target_at = self.machine.memory.bind(self.target, initialized=False)
        self.seen: list[Any] = []
        self.columns = 128
        self.error: MachineError | None = None

    def map(self, output: bool = False) -> Any:
        """A tensor map of the input or the output, one box."""
        array, at = (self.target, self.target_at) if output else (self.source, self.source_at)
        tensor = TensorMap.tiled(
            array, dtype="u16", dims=(16, 128), strides_bytes=(32,), box=(16, 128)
        )
        return TensorMap.decode(tensor.encode(at))

    def tma(self, agent: Agent, i: int, target: int = A2) -> None:
        """One tile by TMA, announced on mbarrier i."""
        agent.mbarrier.arrive(bar(i), expect_tx=TILE, site=f"expect {i}")
        agent.tma.load(target, TensorOperand(self.map(), (0, 0)), bar(i), site=f"TMA {i}")

    def read(self, agent: Agent, column: int = D, num: int = N) -> Any:
        """The warp's 32 lanes of some columns, waited for: uint32 [lanes, columns]."""
        words = agent.tmem.ld(32 * agent.warp << 16 | column, num=num, site="ld")
        agent.tmem.wait("ld", site="wait::ld")
        self.seen.append(words.tobytes())
        return words.T

    def word(self, agent: Agent, space: str, address: int, value: int | None = None) -> None:
        """Loads a word, or stores one."""
        where = np.array([address])
        if value is None:
            self.seen.append(agent.memory.load(space, where, 4, site=f"ld.{space}").tobytes())
        else:
            raw = np.array([[value]], np.uint32).view(np.uint8)
            agent.memory.store(space, where, raw, site=f"st.{space}")

    def _whole(self, body: Callable[[Agent], Any]) -> Callable[[Agent], Any]:
        def program(agent: Agent) -> Any:
            if agent.warp == 0:
                for i in range(8):
                    agent.mbarrier.init(bar(i), 1, site=f"init {i}")
                agent.fence("mbarrier_init", site="fence.mbarrier_init")
                fill(agent, A, A_VALUES)
                fill(agent, B, B_VALUES)
                agent.fence("proxy.async", site="fence.proxy.async")
                yield from agent.tmem.alloc(WORD, self.columns, site="alloc")
            yield from agent.barrier.sync(0, None, site="setup")
            agent.fence("tcgen05.after", site="after setup")
            yield from body(agent)
            agent.tmem.wait("ld", site="end")
            agent.tmem.wait("st", site="end")
            agent.fence("tcgen05.before", site="before end")
            yield from agent.barrier.sync(0, None, site="end")
            if agent.warp == 0:
                for base, columns in list(agent.cta.tmem.allocations.items()):
                    agent.tmem.dealloc(base, columns, site="dealloc")

        return program

    def run(self, *bodies: Callable[[Agent], Any], bare: bool = False) -> Bench:
        """``bare``: only the bodies, without setup and end."""
        programs = bodies if bare else [self._whole(body) for body in bodies]
        try:
            self.machine.run(
                lambda cta: [cta.agent(f"warp {w}", warp=w, body=p) for w, p in enumerate(programs)]
            )
        except MachineError as error:
            self.error = error
        return self

    @property
    def codes(self) -> set[str]:
        """Codes of all findings, and of the error that ended the run."""
        found = {f.code for f in self.machine.findings}
        return found | ({self.error.code} if self.error else set())

    @property
    def result(self) -> Any:
        """All that was read, in any order, and the output array."""
        return sorted(self.seen), self.target.tobytes()
