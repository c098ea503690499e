"""TMA writes that race with an mma's reads of A and B: what depends on them is undefined, and only
a use of it is an error.

DeepGEMM's tiles of 32 and 64 rows: the descriptor names 128 rows, those behind the tile are of the
next stages, and no thread reads their rows of D.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, ElementAddresses, InstructionDescriptor, Machine, MmaOptions
from tcir.machine.memory.undefined import Origin
from tcir.machine.tensor_core.instruction_descriptor_scaled import ScaledDescriptor
from tcir.machine.tma.bulk import BulkSource

from .bench import A2, A2_VALUES, B_VALUES, ORDERS, A, B, Bench, D, bar, fill, finish, mma
from .test_cta_pairs import Pair, commit
from .test_cta_pairs import bar as pair_bar

STAGES, ROUNDS, DONE = 3, 2, 6
SMALL = 32
"""Rows of a tile; an mma names 128."""
BYTES = 32 * SMALL


def load(b: Bench, agent: Agent, target: int, i: int, nbytes: int = BYTES, first: int = 0) -> None:
    """Rows of `Bench.source` by TMA, announced on mbarrier i."""
    agent.mbarrier.arrive(bar(i), expect_tx=nbytes, site="expect")
    source = BulkSource("global", b.source_at + first, nbytes)
    agent.bulk.load(target, source, bar(i), site="TMA")


def found(b: Bench) -> set[tuple[str, str]]:
    assert b.error is None, b.error
    return {(f.severity, f.code) for f in b.machine.findings}


def ring(b: Bench, left: str = "") -> Bench:
    """Warp 1 loads tiles of 32 rows into a ring, warp 2 multiplies; warp 0 reads their rows of D.

    left: an edge of the ring; or "unused", so that warp 1 reads the rows behind them, too.
    """
    b.source[...] = np.arange(b.source.size).reshape(b.source.shape) % 7 + 0x3C00  # f16 near 1

    def reader(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(bar(DONE), 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        b.sum = b.read(agent).view(np.float32)

    def loader(agent: Agent) -> Any:
        for step in range(STAGES * ROUNDS):
            turn, s = divmod(step, STAGES)
            if turn and left != "empty":
                yield from agent.mbarrier.wait(bar(STAGES + s), turn - 1, site="wait empty")
            load(b, agent, A2 + BYTES * s, s, first=BYTES * (step % 4))
        if left == "unused":
            yield from reader(agent)

    def issuer(agent: Agent) -> Any:
        for step in range(STAGES * ROUNDS):
            turn, s = divmod(step, STAGES)
            if left != "full":
                yield from agent.mbarrier.wait(bar(s), turn, site="wait full")
            agent.fence("tcgen05.after", site="after")
            mma(agent, a=A2 + BYTES * s, enable_input_d=step > 0)
            agent.tensor_core.commit(bar(STAGES + s), site="commit")
        agent.tensor_core.commit(bar(DONE), site="commit done")
        for s in range(STAGES):  # the loads, where nothing waited for them
            yield from agent.mbarrier.wait(bar(s), ROUNDS - 1, site="end")

    return b.run(reader, loader, issuer)


@pytest.mark.parametrize("seed", ORDERS)
def test_rows_that_nobody_uses(seed: int | None) -> None:
    b = ring(Bench(seed))
    assert found(b) == {("warning", "operand-race")}
    tiles = b.source.view(np.float16).reshape(4, SMALL, 16).astype(np.float32)
    total = sum(tiles[step % 4] for step in range(STAGES * ROUNDS))
    np.testing.assert_array_equal(b.sum, total @ B_VALUES.T.astype(np.float32))
    warning = b.machine.findings[0]
    assert {warning.first.split(" (")[0], warning.second} == {"TMA", "mma"}
    assert "rows 32..63 of A" in warning.missing and "ships in DeepGEMM" in warning.missing
    assert found(ring(Bench(seed, ordering="isa"))) == {("error", "operand-race")}


@pytest.mark.parametrize("left", ["unused", "full", "empty"])
@pytest.mark.parametrize("seed", ORDERS)
def test_a_use_of_such_rows_is_the_race(left: str, seed: int | None) -> None:
    """Rows behind the tile; or an edge is missing, and it is the tile's own rows that are lost."""
    b = Bench(seed)
    ring(b, left)
    races = [f for f in b.machine.findings if (f.severity, f.code) == ("error", "race")]
    if b.error is None or left == "unused":
        assert any({f.first.split(" (")[0], f.second} == {"TMA", "mma"} for f in races)
    used = [f for f in races if "matters at ld" in f.missing]
    for f in used:
        assert "bytes 0x" in f.missing and " of A" in f.missing and "wait" in f.missing
    assert used or left != "unused"


def refilled(b: Bench, quarter: int, reader: int, column: int = 0, base: int = A) -> Bench:
    """An mma, then a TMA load over a quarter of its A (`base`: B, its second half) that waits for
    nothing; then warp `reader` reads its quarter of D, 8 columns."""

    def body(agent: Agent) -> Any:
        if agent.warp == 0:
            mma(agent)
            nbytes = BYTES if base == A else 256
            load(b, agent, base + nbytes * quarter, 0, nbytes)
            agent.tensor_core.commit(bar(1), site="commit")
            yield from agent.mbarrier.wait(bar(0), 0, site="full")
        yield from agent.mbarrier.wait(bar(1), 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        if agent.warp == reader:
            b.read(agent, D + column, 8)

    return b.run(body, body, body, body)


@pytest.mark.parametrize("seed", ORDERS[:7])
@pytest.mark.parametrize("quarter", [0, 3])
def test_a_load_behind_the_mma(quarter: int, seed: int | None) -> None:
    """The mma is complete (as issued) or in flight, and nobody has read D: its rows are lost."""
    for reader in (0, 1, 3):
        expected = {("warning", "operand-race")}
        if reader == quarter:
            expected |= {("error", "race")}
        assert found(refilled(Bench(seed), quarter, reader)) == expected, reader


@pytest.mark.parametrize("seed", ORDERS[:7])
def test_rows_of_b_are_columns_of_d(seed: int | None) -> None:
    assert found(refilled(Bench(seed), 1, 2, 0, B)) == {("warning", "operand-race")}
    both = {("warning", "operand-race"), ("error", "race")}
    assert found(refilled(Bench(seed), 1, 2, 8, B)) == both


def late(b: Bench, program: Callable[[Agent], Any], target: int, *waits: int) -> Bench:
    """Warp 1 loads 32 rows to `target` once warp 0 is through with `program`, unseen by it; then
    warp 0 reads its quarter of D."""
    through = []

    def first(agent: Agent) -> Any:
        yield from program(agent)
        through.append(True)
        yield from agent.mbarrier.wait(bar(7), 0, site="loaded")
        agent.fence("tcgen05.after", site="after")
        b.read(agent)

    def loader(agent: Agent) -> Any:
        while not through:
            yield from agent.pause()
        for i in waits:
            yield from agent.mbarrier.wait(bar(i), 0, site="wait")
        load(b, agent, target, 7)
        yield from agent.mbarrier.wait(bar(7), 0, site="full")

    return b.run(first, loader)


@pytest.mark.parametrize("seed", ORDERS[:7])
def test_rows_that_were_read_before(seed: int | None) -> None:
    """In another order they would have been lost: the race as it always was."""

    def program(agent: Agent) -> Any:
        mma(agent)
        yield from finish(agent, 0)
        b.read(agent)

    b = Bench(seed)
    late(b, program, A)
    assert found(b) == {("error", "race")}
    b = Bench(seed)
    late(b, program, A + BYTES)
    assert found(b) == {("warning", "operand-race")}


@pytest.mark.parametrize("seed", ORDERS[:7])
def test_a_sum_that_has_made_room_for_another(seed: int | None) -> None:
    """D holds a later product: nothing of it is lost, and what was read of the first one counts."""

    def program(agent: Agent, read: bool) -> Any:
        fill(agent, A2, A2_VALUES)
        agent.fence("proxy.async", site="fence")
        mma(agent)
        yield from finish(agent, 0)
        if read:
            b.read(agent)
        mma(agent, a=A2)
        yield from finish(agent, 1)

    for read, expected in ((False, ("warning", "operand-race")), (True, ("error", "race"))):
        b = Bench(seed)
        late(b, partial(program, read=read), A)
        assert found(b) == {expected}


@pytest.mark.parametrize("seed", ORDERS[:7])
def test_an_mma_behind_another_one_does_not_hide_it(seed: int | None) -> None:
    """Both read the bytes, as rows 0..31 and as rows 32..63; the latter nobody uses."""

    def program(agent: Agent) -> Any:
        fill(agent, A2, A2_VALUES)
        fill(agent, A2 - BYTES, A2_VALUES[:SMALL])
        agent.fence("proxy.async", site="fence")
        agent.mbarrier.arrive(bar(6), site="filled")
        mma(agent, a=A2)
        agent.tensor_core.commit(bar(0), site="commit")
        mma(agent, a=A2 - BYTES, enable_input_d=True)
        yield from finish(agent, 1)

    b = Bench(seed)
    late(b, program, A2, 6)
    assert found(b) == {("warning", "operand-race"), ("error", "race")}
    b = Bench(seed)
    late(b, program, A2, 6, 0)  # behind the first mma
    assert found(b) == {("warning", "operand-race")}


@pytest.mark.parametrize("seed", (None, *range(6)))
@pytest.mark.parametrize("rank", [0, 1])
def test_each_cta_of_a_pair_has_its_rows(rank: int, seed: int | None) -> None:
    """M = 256: a load over A in one CTA costs rows of its own D."""
    p = Pair(256, 32, seed)
    source = np.zeros(BYTES, np.uint8)
    at = p.machine.memory.bind(source)

    def issue(agent: Agent) -> Any:
        p.mma(agent)
        window = agent.cta.window | rank << 24
        agent.mbarrier.arrive(window | pair_bar(1), expect_tx=BYTES, site="expect")
        agent.bulk.load(
            window | 1024, BulkSource("global", at, BYTES), window | pair_bar(1), site="TMA"
        )
        commit(agent)
        yield from ()

    p.run(issue)
    errors = [f for f in p.machine.findings if (f.severity, f.code) == ("error", "race")]
    assert len(errors) == 1 and errors[0].cta == (0, 0, 0) and "rows 0..31" in errors[0].missing
    lost = np.isnan(p.d).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(lost), np.arange(128 * rank, 128 * rank + 32))


# --- the mapping itself: what a change of bytes changes ------------------------------------------

META, SFA, SFB = 256, 260, 280
F16: dict[str, Any] = {"kind": "f16", "a_type": "f16", "b_type": "f16"}
FORMS: dict[str, Any] = {
    "f16, M = 128": InstructionDescriptor(m=128, n=32, **F16),
    "f16, M = 64": InstructionDescriptor(m=64, n=32, **F16),
    "f16, D of f16": InstructionDescriptor(m=128, n=32, d_type="f16", **F16),
    "ws, M = 32": InstructionDescriptor(m=32, n=64, ws=True, **F16),
    "ws, M = 64": InstructionDescriptor(m=64, n=64, ws=True, **F16),
    "sparse": InstructionDescriptor(m=128, n=32, sparse=True, **F16),
    "e4m3": InstructionDescriptor("f8f6f4", 128, 32, "e4m3", "e4m3"),
    "e2m3": InstructionDescriptor("f8f6f4", 128, 32, "e2m3", "e2m3"),
    "mxf8f6f4": ScaledDescriptor("mxf8f6f4", 128, 32, "e4m3", "e4m3", "ue8m0", 1),
    "mxf4": ScaledDescriptor("mxf4", 128, 32, "e2m1", "e2m1", "ue8m0", 2),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_depends_on_bytes_is_what_their_change_changes(name: str) -> None:
    """Words of D that a race takes: those that differ once the bytes do, and no others.

    But for k that a sparse A leaves out, and for zeros among random 6-bit codes.
    """
    i = FORMS[name]
    size = 2 if i.a_type == "f16" else 1
    rng = np.random.default_rng(5)
    wide = 64 if i.sparse else 32
    table = {
        A: ElementAddresses(A + 32 * np.arange(i.m)[:, None] + np.arange(0, 32, size)),
        B: ElementAddresses(B + wide * np.arange(i.n)[:, None] + np.arange(0, wide, size)),
    }

    def issue(agent: Agent, number: int) -> Any:
        core, options = agent.tensor_core, MmaOptions(enable_input_d=False)
        if isinstance(i, ScaledDescriptor):
            core.mma_block_scale(D, table[A], table[B], i, SFA, SFB, options, site="mma")
        else:
            options = MmaOptions(enable_input_d=False, metadata=META if i.sparse else None)
            core.mma(D, table[A], table[B], i, options, site="mma")
        yield from finish(agent, number)

    def body(agent: Agent) -> Any:
        for n in range(12):
            agent.mbarrier.init(bar(n), 1, site="init")
        yield from agent.tmem.alloc(32, 512, site="alloc")
        smem, tmem = agent.cta.smem, agent.cta.tmem
        codes = np.array([0x3C00, 0x4000, 0x4400], np.uint16)
        if size == 1:
            codes = np.array([0x24, 0x42, 0x22, 0x44], np.uint8)
        smem.view(codes.dtype)[1024 // size :] = rng.choice(codes, (smem.size - 1024) // size)
        smem.defined[...] = tmem.defined[:, META:] = True
        tmem.words[:, META:], tmem.words[:, META : META + 4] = 0x7F7F7F7F, 0x44444444
        for trial in range(6):
            base = (A, B)[trial % 2]
            words = np.unique(rng.choice(table[base].addresses.ravel(), trial + 1) // 4)
            yield from issue(agent, 2 * trial)
            before = tmem.words.copy()
            smem.view(np.dtype("u4"))[words] ^= np.uint32(0x0200 if size == 2 else 0x01)
            yield from issue(agent, 2 * trial + 1)
            changed, written = before != tmem.words, tmem.defined.copy()
            last = agent.cta.cluster.last_mma(agent.issue.thread.component)[-1]
            assert smem.shadow is not None
            assert last.lose(smem.shadow, words, Origin("race", "load", "mma"))
            lost = written & ~tmem.defined
            if name == "e2m3" or (name == "sparse" and base == B):
                assert not (changed & ~lost).any()
            else:
                np.testing.assert_array_equal(lost, changed, f"trial {trial}")

    machine = Machine(grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem=32768)
    machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=body)])
