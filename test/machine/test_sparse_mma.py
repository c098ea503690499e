"""tcgen05.mma.sp: a sparse A, its selectors in tensor memory, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Machine, MachineError, SharedDesc, TmemAddr

from .bench import at_column_0
from .issue import issue_mma_bits

M, N = 128, 32
A_AT, B_AT, BAR, WORD = 1024, 8192, 64, 32
D, META, A_TMEM = 0, 64, 96
KINDS: dict[str, tuple[Any, str, int, int, int]] = {
    # numpy type, D type, bits of the descriptor, logical K, chunk
    "f16": (np.float16, "f32", 1 << 4, 32, 4),
    "tf32": (np.float32, "f32", 1 << 4 | 2 << 7 | 2 << 10, 16, 2),
    "i8": (np.int8, "s32", 2 << 4 | 1 << 7 | 1 << 10, 64, 4),
}
PAIRS = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3), (2, 1)]


def placed(array: Any, at: int) -> tuple[np.ndarray, int]:
    """16-byte units column by column, as a descriptor without swizzle wants it."""
    raw = np.ascontiguousarray(array).view(np.uint8)
    rows, width = raw.shape
    units = np.ascontiguousarray(raw.reshape(rows, width // 16, 16).transpose(1, 0, 2))
    return units.reshape(-1, 16), at >> 4 | rows << 16 | 128 >> 4 << 32 | 1 << 46


class Case:
    def __init__(self, kind: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.kind = kind
        dtype, self.d_type, bits, self.k, chunk = KINDS[kind]
        self.idesc = bits | 1 << 2 | N // 8 << 17 | M // 16 << 24
        chunks = self.k // chunk
        if chunk == 2:
            keep = rng.integers(0, 2, (M, chunks))
            self.selectors = np.where(keep, 0xE, 0x4)
            places = 2 * np.arange(chunks) + keep
        else:
            choice = rng.integers(0, len(PAIRS), (M, chunks))
            two = np.array(PAIRS)[choice]
            self.selectors = two[..., 0] | two[..., 1] << 2
            places = (4 * np.arange(chunks)[:, None] + two).reshape(M, -1)
        self.a = rng.integers(1, 9, (M, self.k // 2)).astype(dtype)
        self.b = rng.integers(-9, 10, (N, self.k)).astype(dtype)
        whole = np.zeros((M, self.k), np.int64)
        np.put_along_axis(whole, places, self.a.astype(np.int64), axis=1)
        self.product = whole @ self.b.astype(np.int64).T

    def words(self) -> np.ndarray:
        """The selectors in two columns of 128 lanes."""
        out = np.zeros((M, 2), np.uint32)
        for m in range(M):
            for c, selector in enumerate(self.selectors[m]):
                k = c * (2 if self.kind == "tf32" else 4)
                if self.kind == "i8":
                    lane, column, bit = m, k // 32, k % 32
                elif self.kind == "f16":
                    lane, column = m % 8 + 8 * (k // 16) + 16 * (m // 16), 0
                    bit = k % 16 + 16 * (m // 8 % 2)
                else:
                    lane, column = m % 8 + 8 * (k // 8) + 16 * (m // 16), 0
                    bit = 2 * (k % 8) + 16 * (m // 8 % 2)
                out[lane, column] |= np.uint32(selector << bit)
        return out


def run(
    case: Case,
    seed: int | None,
    *,
    metadata: Any = META,
    wait: bool = True,
    in_tmem: bool = False,
    **options: Any,
) -> tuple[Machine, np.ndarray]:
    machine = Machine(
        grid=(1, 1, 1), block=(128, 1, 1), dynamic_smem=32768, options=at_column_0(seed)
    )
    d = np.zeros((M, N), np.uint32)
    words = case.words() if options.get("words") is None else options["words"]

    def body(agent: Agent) -> Any:
        w = agent.warp
        if w == 0:
            yield from agent.tmem.alloc(WORD, 128, site="alloc")
            agent.mbarrier.init(BAR, 1, site="init")
            for at, array in ((A_AT, case.a), (B_AT, case.b)):
                raw, _ = placed(array, at)
                agent.memory.store("shared", at + 16 * np.arange(len(raw)), raw, site="fill")
            agent.fence("proxy.async", site="fence")
        yield from agent.barrier.sync(0, None, site="setup")
        quarter = slice(32 * w, 32 * w + 32)
        agent.tmem.st(w << 21 | META, "32x32b", 2, words[quarter].T.copy(), site="st")
        if in_tmem:
            raw = np.ascontiguousarray(case.a).view(np.uint32)[quarter]
            agent.tmem.st(w << 21 | A_TMEM, "32x32b", 8, raw.T.copy(), site="st A")
        if wait:
            agent.tmem.wait("st", site="wait::st")
        agent.fence("tcgen05.before", site="before")
        yield from agent.barrier.sync(0, None, site="written")
        agent.fence("tcgen05.after", site="after")
        if w == 0:
            b = placed(case.b, B_AT)[1]
            a: Any = TmemAddr(A_TMEM) if in_tmem else SharedDesc(placed(case.a, A_AT)[1])
            for n in range(2):
                issue_mma_bits(
                    agent,
                    D,
                    a,
                    b,
                    case.idesc | options.get("idesc", 0),
                    case.kind,
                    metadata=metadata,
                    enable_input_d=n > 0,
                    site=f"mma {n}",
                )
            agent.tensor_core.commit(BAR, site="commit")
        yield from agent.mbarrier.wait(BAR, 0, site="done")
        agent.fence("tcgen05.after", site="after")
        d[quarter] = agent.tmem.ld(w << 21 | D, num=N, site="ld").T
        agent.tmem.wait("ld", site="wait::ld")
        agent.tmem.wait("st", site="wait::st at the end")
        agent.fence("tcgen05.before", site="before")
        yield from agent.barrier.sync(0, None, site="end")
        if w == 0:
            agent.tmem.dealloc(0, 128, site="dealloc")

    machine.run(lambda cta: [cta.agent(f"warp {w}", warp=w, body=body) for w in range(4)])
    return machine, d.view(np.float32 if case.d_type == "f32" else np.int32)


@pytest.mark.parametrize("in_tmem", [False, True])
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_product(kind: str, seed: int | None, in_tmem: bool) -> None:
    case = Case(kind, 5)
    machine, d = run(case, seed, in_tmem=in_tmem)
    assert not machine.findings
    np.testing.assert_array_equal(d, 2 * case.product)
    assert machine.counters.mma_untimed == machine.counters.mma == 2


def test_the_metadata_have_to_be_there() -> None:
    found = {f.code for s in range(6) for f in run(Case("f16", 1), s, wait=False)[0].findings}
    assert "race" in found


def test_wrong_metadata() -> None:
    case = Case("f16", 2)
    with pytest.raises(MachineError, match="selector of row 0"):
        run(case, None, words=np.zeros((M, 2), np.uint32))
    with pytest.raises(MachineError, match="sparsity bit"):
        run(case, None, metadata=None)
    with pytest.raises(MachineError, match="lane 0, got 32"):
        run(case, None, metadata=META | 32 << 16)
    with pytest.raises(MachineError, match=r"multiple of 2 .* got 65"):
        run(case, None, metadata=META + 1)
