"""tcgen05.mma.block_scale of two CTAs: where each finds its scales (PTX ISA 9.7.16.10.7)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.machine import Agent, Machine, SharedDesc

from .bench import at_column_0
from .issue import issue_mma_scaled
from .test_clusters import meet

A_AT, B_AT, BAR, WORD = 1024, 16384, 64, 32
D, SFA, SFB = 0, 256, 272
E4M3 = ml_dtypes.float8_e4m3fn


def placed(rows: Any, at: int) -> tuple[np.ndarray, int]:
    """Rows of 32 bytes as 16-byte units column by column, and their descriptor."""
    units = np.ascontiguousarray(rows.view(np.uint8).reshape(len(rows), 2, 16).transpose(1, 0, 2))
    return units.reshape(-1, 16), at >> 4 | len(rows) << 16 | 128 >> 4 << 32 | 1 << 46


def scale_words(m: int, n: int, rank: int, sfa: Any, sfb: Any) -> tuple[Any, Any]:
    """Words [128 lanes, columns] of one CTA's SFA and SFB; what no scale is in stays 0xFF."""
    a = np.full((128, 4), 0xFFFFFFFF, np.uint32)
    b = np.full((128, 8), 0xFFFFFFFF, np.uint32)
    own = m // 2
    for row in range(own):
        for quarter in range(4):
            a[row % 32 + 32 * quarter, row // 32] = sfa[rank * own + row]
    for col in range(n):
        if m == 256:
            for quarter in range(4):
                b[col % 32 + 32 * quarter, col // 32] = sfb[col]
        else:
            half = n // 2
            for copy in range(2):
                lane = col % half % 32 + 32 * copy + 64 * (col // half)
                b[lane, col % half // 32] = sfb[col]
    return a, b


@pytest.mark.parametrize("seed", [None, 2])
@pytest.mark.parametrize(("m", "n"), [(256, 64), (256, 256), (128, 64), (128, 256)])
def test_pair(m: int, n: int, seed: int | None) -> None:
    rng = np.random.default_rng(m + n)
    a, b = (rng.integers(-4, 5, (rows, 32)).astype(np.float32) for rows in (m, n))
    ea, eb = rng.integers(-3, 4, m), rng.integers(-3, 4, n)
    want = (a * 2.0 ** ea[:, None]) @ (b * 2.0 ** eb[:, None]).T
    halves = [np.split(x.astype(E4M3), 2) for x in (a, b)]
    machine = Machine(
        grid=(2, 1, 1),
        block=(128, 1, 1),
        cluster=(2, 1, 1),
        dynamic_smem=32768,
        options=at_column_0(seed),
    )
    got = np.zeros((m, n), np.float32)
    idesc = n // 8 << 17 | 1 << 23 | m // 128 << 27

    def body(agent: Agent) -> Any:
        w, rank, own = agent.warp, agent.cta.rank_in_cluster, agent.cta.window
        tiles = [placed(h[rank], at) for h, at in zip(halves, (A_AT, B_AT))]
        yield from meet(agent)
        if w == 0:
            yield from agent.tmem.alloc(own + WORD, 512, cta_group=2, site="alloc")
            agent.mbarrier.init(own + BAR, 1, site="init")
            for (raw, _), at in zip(tiles, (A_AT, B_AT)):
                agent.memory.store("shared", own + at + 16 * np.arange(len(raw)), raw, site="fill")
            agent.fence("proxy.async", site="fence")
        yield from agent.barrier.sync(0, None, site="setup")
        for words, column in zip(scale_words(m, n, rank, ea + 127, eb + 127), (SFA, SFB)):
            part = words[32 * w : 32 * w + 32].T.copy()
            agent.tmem.st(w << 21 | column, "32x32b", len(part), part, site="st")
        agent.tmem.wait("st", site="wait::st")
        agent.fence("tcgen05.before", site="before")
        yield from meet(agent)
        agent.fence("tcgen05.after", site="after")
        if w == 0 and rank == 0:
            issue_mma_scaled(
                agent,
                D,
                SharedDesc(tiles[0][1]),
                tiles[1][1],
                idesc,
                SFA,
                SFB,
                "mxf8f6f4",
                scales=1,
                enable_input_d=False,
                cta_group=2,
                site="mma",
            )
            agent.tensor_core.commit(BAR, cta_mask=3, cta_group=2, site="commit")
        yield from agent.mbarrier.wait(own + BAR, 0, site="done")
        agent.fence("tcgen05.after", site="after")
        for column in range(0, n if m == 256 else n // 2, 32):
            words = agent.tmem.ld(w << 21 | D + column, num=32, site="ld")
            row, at = 128 * rank + 32 * w, column
            if m == 128:
                row, at = 64 * rank + 32 * (w % 2), column + n // 2 * (w // 2)
            got[row : row + 32, at : at + 32] = np.ascontiguousarray(words.T).view(np.float32)
        agent.tmem.wait("ld", site="wait::ld")
        agent.fence("tcgen05.before", site="before end")
        yield from meet(agent)
        agent.fence("tcgen05.after", site="after end")
        if w == 0:
            yield from agent.tmem.pair_dealloc(0, 512, site="dealloc")

    machine.run(lambda cta: [cta.agent(f"warp {w}", warp=w, body=body) for w in range(4)])
    assert not machine.findings
    np.testing.assert_array_equal(got, want)
