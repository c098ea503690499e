"""What tcgen05.cp, ld, st, alloc, dealloc and TMA do under each answer to an open question."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine import (
    Agent,
    Assumptions,
    Machine,
    MachineError,
    SharedDesc,
    TensorMap,
    TensorOperand,
)
from tcir.machine.tensor_core.descriptor import MatrixDescriptor, element_table
from tcir.machine.tma.box import load_box
from tcir.run_options import RunOptions

from .bench import SLAB, WORD, A, Bench, D, fill, finish, mma
from .test_cta_pairs import Pair, commit, meet, rows

DESCRIPTOR = A >> 4 | 4096 >> 4 << 16 | 128 >> 4 << 32 | 1 << 46
"""K-major, no swizzle: groups of eight rows of 16 bytes, the second 16 bytes of a row 4 KB on."""


def numbered(agent: Agent, size: int = 8192) -> None:
    """Every 16 bytes of shared memory from A on hold their own number."""
    chunks = np.repeat(np.arange(size // 16, dtype=np.uint32)[:, None], 4, axis=1)
    fill(agent, A, np.ascontiguousarray(chunks))
    agent.fence("proxy.async", site="fence")


AMID = A + 512 >> 4 | 1024 >> 4 << 32 | 1 << 46 | 2 << 61
"""K-major, swizzle 128B, from row 4 of the pattern on."""


def after_refresh(lane: int, descriptor: int = DESCRIPTOR, **choice: str) -> dict[int, list[int]]:
    """Lane -> numbers of the 16-byte pieces that cp.4x256b put there."""
    bench = Bench(assumptions=Assumptions(**choice))
    found: dict[int, list[int]] = {}

    def body(agent: Agent) -> Any:
        numbered(agent)
        agent.tensor_core.cp(lane << 16 | SLAB, SharedDesc(descriptor), "4x256b", site="refresh")
        yield from finish(agent, 0)
        words, defined = agent.cta.tmem.words, agent.cta.tmem.defined
        for row in np.flatnonzero(defined[:, SLAB]):
            found[int(row)] = [int(words[row, SLAB]), int(words[row, SLAB + 4])]

    bench.run(body)
    assert not bench.codes
    return found


@pytest.mark.parametrize("lane", [0, 31])
def test_rows_of_the_refresh(lane: int) -> None:
    near = after_refresh(lane)
    assert near == {32 * q + lane: [q, 256 + q] for q in range(4)}
    far = after_refresh(lane, cp4x256b_rows="every-32")
    assert far == {32 * q + lane: [32 * q, 256 + 32 * q] for q in range(4)}


def test_phase_of_rows_amid_the_pattern() -> None:
    pieces = {q: [8 * (4 + q) + (j ^ (4 + q)) for j in range(2)] for q in range(4)}
    assert after_refresh(31, AMID) == {32 * q + 31: pieces[q] for q in pieces}
    pieces = {q: [8 * (4 + q) + (j ^ q) for j in range(2)] for q in range(4)}
    assert after_refresh(31, AMID, cp_row_phase="start") == {
        32 * q + 31: p for q, p in pieces.items()
    }


def test_lane_of_the_refresh() -> None:
    assert set(after_refresh(5)) == {5, 37, 69, 101}
    assert set(after_refresh(5, cp4x256b_lane="last")) == {31, 63, 95, 127}


@pytest.mark.parametrize(
    ("rule", "legal"),
    [("own-or-local", {0, 32}), ("own", {32}), ("five-bits", {0, 32, 64, 96})],
)
def test_lanes_of_a_warp(rule: str, legal: set[int]) -> None:
    """Warp 1 reads its 32 lanes by an address that names each quarter."""
    accepted = set()
    for lane in (0, 32, 64, 96):
        bench = Bench(assumptions=Assumptions(ld_st_lane=rule))
        got: list[Any] = []

        def issuer(agent: Agent) -> Any:
            mma(agent)
            yield from finish(agent, 0)
            yield from agent.barrier.sync(1, 64, site="done")

        def reader(agent: Agent, lane: int = lane, got: list[Any] = got) -> Any:
            yield from agent.barrier.sync(1, 64, site="done")
            agent.fence("tcgen05.after", site="after")
            got.append(agent.tmem.ld(lane << 16 | D, num=16, site="ld").T.copy())
            got.append(agent.cta.tmem.words[32:64, D : D + 16].copy())

        bench.run(issuer, reader)
        if bench.error is None:
            accepted.add(lane)
            np.testing.assert_array_equal(*got)
        else:
            assert "quarter" in str(bench.error)
    assert accepted == legal


@pytest.mark.parametrize(
    ("choice", "upper"), [("unspecified", 0xCBCB), ("zero", 0), ("kept", 0xABCD)]
)
def test_upper_halves_of_unpack(choice: str, upper: int) -> None:
    bench = Bench(assumptions=Assumptions(unpack_upper=choice))
    found: list[Any] = []

    def body(agent: Agent) -> Any:
        before = np.full((2, 32), 0xABCD1234, np.uint32)
        agent.tmem.st(D, "32x32b", 2, before, site="st")
        agent.tmem.wait("st", site="wait")
        data = np.full((1, 32), 0x77778888, np.uint32)
        agent.tmem.st(D, "32x32b", 1, data, unpack=True, site="st.unpack")
        agent.tmem.wait("st", site="wait")
        found.append(agent.cta.tmem.words[0, D : D + 2].tolist())
        yield from ()

    assert not bench.run(body).codes
    assert found == [[upper << 16 | 0x8888, upper << 16 | 0x7777]]


@pytest.mark.parametrize(("choice", "codes"), [("undefined", {"undefined-read"}), ("zeros", set())])
def test_what_alloc_gives(choice: str, codes: set[str]) -> None:
    bench = Bench(assumptions=Assumptions(alloc_content=choice))
    seen: list[Any] = []

    def body(agent: Agent) -> Any:
        seen.append(bench.read(agent))
        yield from ()

    assert bench.run(body).codes == codes
    assert (seen[0] == 0).all() == (choice == "zeros")


@pytest.mark.parametrize(
    ("choice", "codes"),
    [("lowest", set()), ("any", {"tensor-memory-columns"})],
)
@pytest.mark.parametrize("reads_the_address", [True, False])
def test_where_an_allocation_lies(choice: str, codes: set[str], reads_the_address: bool) -> None:
    """A program that takes column 0 for granted, as DeepGEMM does, or uses what alloc wrote."""
    found: set[str] = set()
    bases = set()
    for seed in (None, *range(10)):
        bench = Bench(seed, assumptions=Assumptions(alloc_place=choice))

        def body(agent: Agent) -> Any:
            base = int(agent.memory.load("shared", np.array([WORD]), 4, site="ld").view("u4")[0, 0])
            bases.add(base)
            mma(agent, base if reads_the_address else 0)
            yield from finish(agent, 0)

        found |= bench.run(body).codes
    assert found == (set() if reads_the_address else codes)
    assert (bases == {0}) == (choice == "lowest")


@pytest.mark.parametrize(("rows", "fifth", "ninth"), [(4, 512, 1024), (8, 4 * 128, 512)])
def test_rows_of_k_that_a_stride_steps_over(rows: int, fifth: int, ninth: int) -> None:
    """With a stride of 512 bytes a dense step reads the same under both answers, 16 rows do not."""
    packed = MatrixDescriptor(0, 4096, 512, "128B_ATOM_32B")
    _, table = element_table(packed, 64, 16, 32, "MN", atom_32b_rows=rows)
    assert (table[0, 4], table[0, 8]) == (fifth, ninth)
    other = MatrixDescriptor(0, 4096, 512, "128B")
    tables = [element_table(other, 64, 16, 16, "MN", atom_32b_rows=n)[1] for n in (4, 8)]
    np.testing.assert_array_equal(*tables)  # other swizzles step over 8


@pytest.mark.parametrize("swizzle", ["128B_ATOM_32B_FLIP_8B", "128B_ATOM_32B"])
def test_lines_that_flip(swizzle: str) -> None:
    machine = Machine(grid=(1, 1, 1), block=(32, 1, 1))
    data = np.arange(512, dtype=np.uint8).reshape(4, 128)
    tensor = TensorMap.tiled(
        data, dtype="u8", dims=(128, 4), strides_bytes=(128,), box=(128, 4), swizzle=swizzle
    )
    decoded = TensorMap.decode(tensor.encode(machine.memory.bind(data)))
    odd, even = (
        load_box(
            TensorOperand(decoded, (0, 0), "tile", ()), 0, Assumptions(flip_8b_lines=lines), "here"
        ).shared
        for lines in ("odd", "even")
    )
    if swizzle == "128B_ATOM_32B":
        np.testing.assert_array_equal(odd, even)
    else:
        np.testing.assert_array_equal(odd ^ 8, even)


# --- pairs of CTAs -------------------------------------------------------------------------------


@pytest.mark.parametrize(("choice", "origin"), [("own", (0, 1)), ("issuer", (0, 0))])
def test_where_a_pair_copies_from(choice: str, origin: tuple[int, int]) -> None:
    """Each CTA holds its half of A in shared memory; CTA 0 issues."""
    p = Pair(256, 32)
    p.machine.assumptions = Assumptions(cp_pair_source=choice)
    found: list[Any] = []

    def issue(agent: Agent) -> Any:
        ctas = agent.peers.group(2, "cp")
        agent.tensor_core.cp(SLAB, rows(128, A, 1), cta_group=2, site="cp")
        p.mma(agent)
        commit(agent)
        yield from agent.mbarrier.wait(64, 0, site="done")
        found.extend(cta.tmem.words[:, SLAB : SLAB + 8].copy() for cta in ctas)

    p.run(issue)
    assert not p.codes, (p.machine.findings, p.error)
    for words, rank in zip(found, origin, strict=True):
        np.testing.assert_array_equal(words.view(np.float16), Pair.half(p.a, rank))


@pytest.mark.parametrize(("choice", "hangs"), [("waits", True), ("at-once", False)])
def test_a_barrier_between_the_two_deallocs(choice: str, hangs: bool) -> None:
    def body(agent: Agent) -> Any:
        own = agent.cta.window
        yield from meet(agent)
        yield from agent.tmem.alloc(own + WORD, 32, cta_group=2, site="alloc")
        if own:
            yield from meet(agent)
        yield from agent.tmem.pair_dealloc(0, 32, site="dealloc")
        if not own:
            yield from meet(agent)
        yield from meet(agent)  # the peer has to be there for the dealloc

    machine = Machine(
        grid=(2, 1, 1),
        block=(32, 1, 1),
        cluster=(2, 1, 1),
        dynamic_smem=1024,
        options=RunOptions(assumptions=Assumptions(pair_dealloc=choice)),
    )
    try:
        machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=body)])
    except MachineError as error:
        assert hangs and error.code == "deadlock"
    else:
        assert not hangs and not machine.findings
