"""Small programs written against the methods of an agent, and how to run them.

Every program multiplies the same integers: A [128, 16] and B [16, 16], f16, so that D = A Bᵀ is
exact and every row and column of it is different.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from tcir.machine import (
    Agent,
    ElementAddresses,
    Finding,
    Machine,
    TensorMap,
    TensorOperand,
    TmemAddr,
)

from .bench import at_column_0
from .issue import issue_mma

Program = Callable[[Agent], Generator[Any, Any, None]]

M, N, K = 128, 16, 16
A = ((np.arange(M * K).reshape(M, K) * 7) % 29 - 14.5).astype(np.float16)
B = ((np.arange(N * K).reshape(N, K) * 5) % 23 - 11.5).astype(np.float16)
A2 = (A + 1).astype(np.float16)
"""A second tile."""
A_BYTES, B_BYTES = A.nbytes, B.nbytes
A_AT, B_AT, C_AT = 0, 0x1000, 0x2000
FULL, EMPTY, DONE, FREE, WORD = 0x4000, 0x4008, 0x4010, 0x4018, 0x4020
SMEM = 0x4100
D_AT, D2_AT, SLAB = 0, 32, 64
"""Columns of two accumulators and of an A in tensor memory."""


def addresses(rows: int) -> np.ndarray:
    """Rows of 32 bytes, one behind the other."""
    return np.arange(rows)[:, None] * 2 * K + np.arange(K) * 2


A_ADDRESSES, B_ADDRESSES = addresses(M), addresses(N)
A_ROWS = np.arange(M)[:, None] * 2 * K + np.arange(2 * K)
"""Bytes of A, for cp."""


def product(a: np.ndarray = A, b: np.ndarray = B) -> np.ndarray:
    """D of `a` and `b` in numpy."""
    return a.astype(np.float32) @ b.astype(np.float32).T


class Run:
    """One launch of one CTA: its machine, buffers and maps; `seen` is what programs leave there."""

    def __init__(self, seed: int | None = None, grid: int = 1, **options: Any) -> None:
        self.machine = Machine(
            grid=(grid, 1, 1),
            block=(192, 1, 1),
            dynamic_smem=SMEM,
            options=at_column_0(seed, **options),
        )
        self.a, self.a2, self.b = A.copy(), A2.copy(), B.copy()
        self.out = np.zeros((M, K), np.float16)
        self.map_a, self.map_a2, self.map_b = (self._map(x) for x in (self.a, self.a2, self.b))
        self.map_out = self._map(self.out)
        self.seen: dict[str, Any] = {}

    def _map(self, array: np.ndarray) -> Any:
        tensor_map = TensorMap.tiled(
            array, dtype="f16", dims=(K, len(array)), strides_bytes=(2 * K,), box=(K, len(array))
        )
        return TensorMap.decode(tensor_map.encode(self.machine.memory.bind(array)))

    def agents(self, *bodies: Program) -> Run:
        """Runs warp 0, 1, … with these bodies."""

        def start(cta: Any) -> list[Agent]:
            return [cta.agent(f"warp {w}", warp=w, body=body) for w, body in enumerate(bodies)]

        self.machine.run(start)
        return self

    @property
    def findings(self) -> list[Finding]:
        return self.machine.findings

    @property
    def codes(self) -> set[tuple[str, str]]:
        """(severity, code) of everything found."""
        return {(f.severity, f.code) for f in self.findings}


# --- pieces ------------------------------------------------------------------------------------


def prologue(agent: Agent, **counts: int) -> Generator[Any, Any, None]:
    """Warp 0 allocates 128 columns and makes the mbarriers (full, empty, done, free); all meet."""
    if agent.warp == 0:
        yield from agent.tmem.alloc(WORD, 128, site="alloc")
        for name, at in (("full", FULL), ("empty", EMPTY), ("done", DONE), ("free", FREE)):
            agent.mbarrier.init(at, counts.get(name, 1), site=f"init {name}")
        agent.fence("mbarrier_init", site="fence init")
        agent.fence("tcgen05.before", site="before")
    yield from agent.barrier.sync(0, None, site="meet")
    agent.fence("tcgen05.after", site="after")


def epilogue(agent: Agent) -> Generator[Any, Any, None]:
    """All meet, warp 0 frees the columns."""
    agent.fence("tcgen05.before", site="before")
    yield from agent.barrier.sync(0, None, site="part")
    agent.fence("tcgen05.after", site="after")
    if agent.warp == 0:
        agent.tmem.dealloc(0, 128, site="dealloc")


def load_ab(
    agent: Agent,
    run: Run,
    announced: int = A_BYTES + B_BYTES,
    full: int = FULL,
    second: bool = False,
) -> None:
    """A (or A2) and B by TMA, on an mbarrier."""
    agent.mbarrier.arrive(full, expect_tx=announced, site="expect")
    a = run.map_a2 if second else run.map_a
    agent.tma.load(A_AT, TensorOperand(a, (0, 0)), full, site="load A")
    agent.tma.load(B_AT, TensorOperand(run.map_b, (0, 0)), full, site="load B")


def put(agent: Agent, at: int, array: np.ndarray, site: str) -> None:
    """Writes an array to shared memory with ordinary stores."""
    data = np.ascontiguousarray(array).view(np.uint8).reshape(-1, 16)
    agent.memory.store("shared", at + 16 * np.arange(len(data)), data, site=site)


def multiply(
    agent: Agent,
    d: int = D_AT,
    a: int | TmemAddr = A_AT,
    accumulate: bool = False,
    site: str = "mma",
    **flags: Any,
) -> None:
    """One mma of A at `a` and B at `B_AT`."""
    operand = a if isinstance(a, TmemAddr) else ElementAddresses(A_ADDRESSES, a)
    issue_mma(
        agent,
        d,
        operand,
        ElementAddresses(B_ADDRESSES, B_AT),
        M,
        N,
        "f16",
        "f16",
        enable_input_d=accumulate,
        site=site,
        **flags,
    )


def read_quarter(agent: Agent, d: int = D_AT) -> np.ndarray:
    """D of the warp's own 32 lanes, float32 [32, N]. The caller waits."""
    words = agent.tmem.ld(agent.warp % 4 << 21 | d, "32x32b", N, site="ld")
    return np.ascontiguousarray(words.T).view(np.float32)
