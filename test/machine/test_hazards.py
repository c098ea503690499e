"""Every edge of a program, with it and without it.

A case is a program whose edges have names. With all of them there is no finding, and the result is
the same under every completion order; without one there is the finding that the case names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import pytest

from tcir.machine import (
    Assumptions,
    Deadlock,
    ElementAddresses,
    MachineError,
    TensorOperand,
    TmemAddr,
)

from .agent_programs import (
    A2,
    A_AT,
    A_BYTES,
    A_ROWS,
    B_AT,
    B_BYTES,
    C_AT,
    D2_AT,
    D_AT,
    DONE,
    EMPTY,
    FREE,
    FULL,
    A,
    B,
    K,
    M,
    Program,
    Run,
    epilogue,
    load_ab,
    multiply,
    product,
    prologue,
    put,
    read_quarter,
)

SEEDS = [None, *range(10)]
Left = Collection[str]
Case = Callable[[Run, Left], list[Program]]


def stored_operands(run: Run, left: Left) -> list[Program]:
    """Warp 0 stores A and B and reads the result; warp 1 multiplies."""

    def warp0(agent):
        yield from prologue(agent)
        put(agent, A_AT, A, "store A")
        put(agent, B_AT, B, "store B")
        if "proxy fence" not in left:
            agent.fence("proxy.async", site="proxy fence")
        if "full" not in left:
            agent.mbarrier.arrive(FULL, site="arrive full")
        yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent)
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    def warp1(agent):
        yield from prologue(agent)
        if "full" not in left:
            yield from agent.mbarrier.wait(FULL, 0, site="wait full")
            agent.fence("tcgen05.after", site="after")
        multiply(agent)
        agent.tensor_core.commit(DONE, site="commit")
        yield from epilogue(agent)

    return [warp0, warp1]


def two_tiles(run: Run, left: Left) -> list[Program]:
    """Warp 1 loads two A into one place, warp 2 multiplies both, warp 0 reads the sum."""

    def warp0(agent):
        yield from prologue(agent)
        if "done" not in left:
            yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        if "after" not in left:
            agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent) - product(A2)[:32]
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    def warp1(agent):
        yield from prologue(agent)
        for tile, full in enumerate((FULL, FREE)):
            if "empty" not in left:
                yield from agent.mbarrier.wait(EMPTY, tile ^ 1, site="wait empty")
            load_ab(agent, run, full=full, second=tile > 0)
        yield from epilogue(agent)

    def warp2(agent):
        yield from prologue(agent)
        for tile, full in enumerate((FULL, FREE)):
            if "full" not in left:
                yield from agent.mbarrier.wait(full, int("parity" in left), site="wait full")
            agent.fence("tcgen05.after", site="after")
            multiply(agent, accumulate=tile > 0)
            agent.tensor_core.commit(EMPTY, site="commit empty")
        agent.tensor_core.commit(DONE, site="commit done")
        yield from epilogue(agent)

    return [warp0, warp1, warp2]


def reused_accumulator(run: Run, left: Left) -> list[Program]:
    """Warp 0 reads D, then warp 1 overwrites it by the next mma."""

    def warp0(agent):
        yield from prologue(agent)
        load_ab(agent, run)
        yield from agent.mbarrier.wait(DONE, 0, site="wait done 0")
        agent.fence("tcgen05.after", site="after")
        run.seen["first"] = read_quarter(agent)
        if "wait ld" not in left:
            agent.tmem.wait("ld", site="wait ld")
        if "before" not in left:
            agent.fence("tcgen05.before", site="before")
        agent.mbarrier.arrive(FREE, site="arrive free")
        yield from agent.mbarrier.wait(EMPTY, 0, site="wait done 1")
        agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent) / 2
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    def warp1(agent):
        yield from prologue(agent)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        agent.fence("tcgen05.after", site="after")
        multiply(agent)
        agent.tensor_core.commit(DONE, site="commit 0")
        if "free" not in left:
            yield from agent.mbarrier.wait(FREE, 0, site="wait free")
        if "after" not in left:
            agent.fence("tcgen05.after", site="after")
        multiply(agent, accumulate=True, site="mma 2")
        agent.tensor_core.commit(EMPTY, site="commit 1")
        yield from epilogue(agent)

    return [warp0, warp1]


def a_by_st(run: Run, left: Left) -> list[Program]:
    """Warps 0..3 write A to tensor memory, warp 4 multiplies; warp 0 reads."""

    def storer(agent):
        yield from prologue(agent, full=5)
        if agent.warp == 0:
            agent.mbarrier.arrive(FULL, expect_tx=B_BYTES, site="expect")
            agent.tma.load(B_AT, TensorOperand(run.map_b, (0, 0)), FULL, site="load B")
        rows = A[32 * agent.warp : 32 * agent.warp + 32]
        words = np.ascontiguousarray(rows).view(np.uint32).T
        agent.tmem.st(agent.warp << 21 | 64, "32x32b", 8, words, site="st A")
        if "wait st" not in left:
            agent.tmem.wait("st", site="wait st")
        if "before" not in left:
            agent.fence("tcgen05.before", site="before")
        agent.mbarrier.arrive(FULL, site="arrive full")
        yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        if agent.warp == 0:
            run.seen["d"] = read_quarter(agent)
            agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    def issuer(agent):
        yield from prologue(agent)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        if "after" not in left:
            agent.fence("tcgen05.after", site="after")
        multiply(agent, a=TmemAddr(64))
        agent.tensor_core.commit(DONE, site="commit")
        yield from epilogue(agent)

    return [storer, storer, storer, storer, issuer]


def copied_slab(run: Run, left: Left) -> list[Program]:
    """One warp copies A to tensor memory, multiplies, copies the same again, multiplies again."""

    def warp0(agent):
        yield from prologue(agent)
        load_ab(agent, run)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        agent.fence("tcgen05.after", site="after")
        agent.tensor_core.cp(64, ElementAddresses(A_ROWS + A_AT), site="cp")
        multiply(agent, a=TmemAddr(64))
        if "commit" not in left:
            agent.tensor_core.commit(EMPTY, site="commit 0")
            yield from agent.mbarrier.wait(EMPTY, 0, site="wait empty")
        agent.tensor_core.cp(64, ElementAddresses(A_ROWS + A_AT), site="cp again")
        multiply(agent, a=TmemAddr(64), accumulate=True)
        agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent) / 2
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    return [warp0]


def shifted_slab(run: Run, left: Left) -> list[Program]:
    """Two accumulators take turns on a slab that .ashift moves."""

    def warp0(agent):
        yield from prologue(agent)
        load_ab(agent, run)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        agent.fence("tcgen05.after", site="after")
        agent.tensor_core.cp(64, ElementAddresses(A_ROWS + A_AT), site="cp")
        multiply(agent, a=TmemAddr(64), d=D_AT, ashift=True)
        if "commit" not in left:
            agent.tensor_core.commit(EMPTY, site="commit 0")
            yield from agent.mbarrier.wait(EMPTY, 0, site="wait empty")
        multiply(agent, a=TmemAddr(64), d=D2_AT, site="mma of the second")
        agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent)
        second = read_quarter(agent, D2_AT)
        agent.tmem.wait("ld", site="wait ld")
        expected = product()[[*range(1, 32), 31]]
        run.seen["first"] = second - expected + run.seen["d"]
        yield from epilogue(agent)

    return [warp0]


def bulk_store(run: Run, left: Left) -> list[Program]:
    """Warp 0 stores a tile, writes the tile anew and stores that."""

    def warp0(agent):
        put(agent, A_AT, A2, "first tile")
        if "proxy fence" not in left:
            agent.fence("proxy.async", site="proxy fence")
        agent.tma.store(A_AT, TensorOperand(run.map_out, (0, 0)), site="store")
        agent.bulk.commit(site="group")
        if "read" not in left:
            yield from agent.bulk.wait(0, read="write" in left, site="bulk wait")
        put(agent, A_AT, A, "second tile")
        agent.fence("proxy.async", site="proxy fence")
        agent.tma.store(A_AT, TensorOperand(run.map_out, (0, 0)), site="store again")
        agent.bulk.commit(site="group")
        if "end" not in left:
            yield from agent.bulk.wait(0, site="last wait")

    return [warp0]


def tensor_memory_of_one_warp(run: Run, left: Left) -> list[Program]:
    """st, then ld of the same words, then st over them."""

    def warp0(agent):
        yield from prologue(agent)
        words = np.ascontiguousarray(product()[:32].T).view(np.uint32)
        agent.tmem.st(0, "32x32b", 16, words, site="st")
        if "wait st" not in left:
            agent.tmem.wait("st", site="wait st")
        run.seen["d"] = read_quarter(agent)
        if "wait ld" not in left:
            agent.tmem.wait("ld", site="wait ld")
        agent.tmem.st(0, "32x32b", 16, words, site="st again")
        agent.tmem.wait("st", site="wait st")
        yield from epilogue(agent)

    return [warp0]


def columns_given_back(run: Run, left: Left) -> list[Program]:
    """Warp 0 frees the columns when warp 1's mma is complete."""

    def warp0(agent):
        yield from prologue(agent)
        load_ab(agent, run)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        if "done" not in left:
            yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        yield from agent.barrier.sync(0, None, site="part")
        if "dealloc" not in left:
            agent.tmem.dealloc(0, 128, site="dealloc")
        run.seen["d"] = product()[:32]

    def warp1(agent):
        yield from prologue(agent)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        agent.fence("tcgen05.after", site="after")
        multiply(agent)
        agent.tensor_core.commit(DONE, site="commit")
        yield from agent.barrier.sync(0, None, site="part")

    return [warp0, warp1]


def generic_exchange(run: Run, left: Left) -> list[Program]:
    """Warp 0 writes shared memory, warp 1 reads it, warp 0 writes it again."""
    where = 16 * np.arange(M * K * 2 // 16)

    def warp0(agent):
        put(agent, A_AT, A, "write")
        if "first" not in left:
            yield from agent.barrier.sync(1, 64, site="meet 1")
        if "second" not in left:
            yield from agent.barrier.sync(2, 64, site="meet 2")
        put(agent, A_AT, A2, "write again")

    def warp1(agent):
        if "first" not in left:
            yield from agent.barrier.sync(1, 64, site="meet 1")
        got = agent.memory.load("shared", where, 16, site="read")
        run.seen["d"] = product(np.ascontiguousarray(got).view(np.float16).reshape(M, K)[:32])
        if "second" not in left:
            yield from agent.barrier.sync(2, 64, site="meet 2")
        yield from agent.pause()

    return [warp0, warp1]


def initialised_barriers(run: Run, left: Left) -> list[Program]:
    """Warp 0 makes an mbarrier, warp 1 has TMA signal it."""

    def warp0(agent):
        agent.mbarrier.init(FULL, 1, site="init")
        if "init fence" not in left:
            agent.fence("mbarrier_init", site="init fence")
        if "meet" not in left:
            yield from agent.barrier.sync(1, 64, site="meet")
        yield from agent.mbarrier.wait(FULL, 0, site="wait")
        got = agent.memory.load("shared", 32 * np.arange(32), 32, site="read")
        run.seen["d"] = product(np.ascontiguousarray(got).view(np.float16))

    def warp1(agent):
        if "meet" not in left:
            yield from agent.barrier.sync(1, 64, site="meet")
        else:  # late enough by chance
            for _ in range(50):
                yield from agent.pause()
        agent.mbarrier.arrive(FULL, expect_tx=A_BYTES, site="expect")
        agent.tma.load(A_AT, TensorOperand(run.map_a, (0, 0)), FULL, site="load")

    return [warp0, warp1]


@dataclass(frozen=True)
class Missing:
    """Without `edge`, `case` has a finding of this severity and code about these two sites."""

    case: Case
    edge: str
    severity: str
    code: str
    names: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        return f"{self.case.__name__}-{self.edge.replace(' ', '_')}"


CASES = [
    stored_operands,
    two_tiles,
    reused_accumulator,
    a_by_st,
    copied_slab,
    shifted_slab,
    bulk_store,
    tensor_memory_of_one_warp,
    columns_given_back,
    generic_exchange,
    initialised_barriers,
]
OMISSIONS = [
    Missing(stored_operands, "proxy fence", "error", "missing-proxy-fence", ("store A", "mma")),
    Missing(stored_operands, "full", "error", "race", ("store A", "mma")),
    Missing(two_tiles, "full", "error", "race", ("load A", "mma")),
    Missing(two_tiles, "empty", "error", "race", ("mma", "load A")),
    Missing(two_tiles, "parity", "error", "race", ("load A", "mma")),
    Missing(two_tiles, "done", "error", "race", ("mma", "ld")),
    Missing(two_tiles, "after", "warning", "missing-fence-after", ("mma", "ld")),
    Missing(reused_accumulator, "wait ld", "error", "race", ("ld", "mma 2")),
    Missing(reused_accumulator, "free", "error", "race", ("ld", "mma 2")),
    Missing(reused_accumulator, "before", "warning", "missing-fence-before", ("ld", "mma 2")),
    Missing(reused_accumulator, "after", "warning", "missing-fence-after", ("ld", "mma 2")),
    Missing(a_by_st, "wait st", "error", "race", ("st A", "mma")),
    Missing(a_by_st, "before", "warning", "missing-fence-before", ("st A", "mma")),
    Missing(a_by_st, "after", "warning", "missing-fence-after", ("st A", "mma")),
    Missing(copied_slab, "commit", "warning", "issue-order", ("mma", "cp again")),
    Missing(shifted_slab, "commit", "error", "race", ("mma", "mma of the second")),
    Missing(bulk_store, "proxy fence", "error", "missing-proxy-fence", ("first tile", "store")),
    Missing(bulk_store, "read", "error", "race", ("store", "second tile")),
    Missing(bulk_store, "write", "error", "race", ("store", "store again")),
    Missing(
        bulk_store, "end", "warning", "never-awaited", ("store again", "the end of the kernel")
    ),
    Missing(tensor_memory_of_one_warp, "wait st", "error", "race", ("st", "ld")),
    Missing(tensor_memory_of_one_warp, "wait ld", "error", "race", ("ld", "st again")),
    Missing(columns_given_back, "done", "error", "race", ("mma", "dealloc")),
    Missing(
        columns_given_back,
        "dealloc",
        "error",
        "tensor-memory-leak",
        ("128 columns at 0", "the end of the kernel"),
    ),
    Missing(generic_exchange, "first", "error", "race", ("write", "read")),
    Missing(generic_exchange, "second", "error", "race", ("read", "write again")),
    Missing(initialised_barriers, "init fence", "warning", "missing-init-fence", ("init", "load")),
    Missing(initialised_barriers, "meet", "error", "mbarrier-init-race", ("init", "expect")),
]


def result(run: Run) -> np.ndarray:
    """D as warp 0 read it; of what was stored to global memory, after the run."""
    return run.seen["d"] if "d" in run.seen else product(run.out[:32])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_correct_programs_have_no_finding_and_one_result(case: Case, seed: int | None) -> None:
    run = Run(seed)
    run.agents(*case(run, ()))
    assert run.findings == []
    np.testing.assert_array_equal(result(run), product()[:32])
    np.testing.assert_array_equal(run.seen.get("first", result(run)), product()[:32])


@pytest.mark.parametrize("missing", OMISSIONS, ids=str)
def test_a_missing_edge_is_found(missing: Missing) -> None:
    """Under every order something is noticed; under most of them both operations are named."""
    named = 0
    for seed in SEEDS:
        run = Run(seed)
        ended = True
        try:
            run.agents(*missing.case(run, (missing.edge,)))
        except Deadlock:  # a phase came twice before its wait
            ended = False
        errors = [f for f in run.findings if f.severity == "error"]
        if missing.severity == "error":
            assert errors or not ended
        else:
            assert ended and not errors
            np.testing.assert_array_equal(result(run), product()[:32])
        # Without the edge the two may also come in the other order.
        pairs = {
            (f.first.split(" (")[0], f.second)
            for f in run.findings
            if (f.severity, f.code) == (missing.severity, missing.code)
        }
        named += bool(pairs & {missing.names, missing.names[::-1]})
    assert named > len(SEEDS) // 2


@pytest.mark.parametrize(
    "edge",
    [m for m in OMISSIONS if m.case is two_tiles and m.edge in ("empty", "full", "done")],
    ids=str,
)
def test_some_order_gives_other_numbers(edge: Missing) -> None:
    """Completion really happens later: a race is not only reported, it also does harm."""
    harmed = 0
    for seed in range(20):
        run = Run(seed, hazards="off")
        try:
            run.agents(*edge.case(run, (edge.edge,)))
        except MachineError:
            harmed += 1
            continue
        assert run.findings == []  # nobody looked
        harmed += not np.array_equal(run.seen["d"], product()[:32])
    assert harmed


# --- cases of their own ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("wrong", [-B_BYTES, -16, 16, B_BYTES])
def test_a_wrong_byte_count_is_found(wrong: int, seed: int | None) -> None:
    run = Run(seed)

    def warp0(agent):
        yield from prologue(agent)
        load_ab(agent, run, A_BYTES + B_BYTES + wrong)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        agent.fence("tcgen05.after", site="after")
        multiply(agent)
        agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        yield from epilogue(agent)

    try:
        run.agents(warp0)
    except Deadlock as deadlock:
        assert "warp 0" in str(deadlock) and "0x4000" in str(deadlock)
        assert f"tx-count {wrong}" in str(deadlock)
    else:
        # Too few by a whole load: the phase may end before the other load has arrived.
        assert wrong == -B_BYTES
        assert {("error", "race"), ("error", "expect-tx-mismatch")} & run.codes


def test_deadlock_names_everybody_who_waits() -> None:
    def warp0(agent):
        agent.mbarrier.init(FULL, 2, site="init")
        agent.mbarrier.arrive(FULL, expect_tx=64, site="arrive")
        yield from agent.mbarrier.wait(FULL, 0, site="line 12")

    def warp1(agent):
        yield from agent.barrier.sync(3, 96, site="line 40")

    with pytest.raises(Deadlock) as caught:
        Run().agents(warp0, warp1)
    text = str(caught.value)
    for words in (
        "warp 0", "parity 0", "0x4000", "phase 0", "1 of 2 arrivals pending", "tx-count 64",
        "line 12", "warp 1", "barrier 3 (32 of 96 threads)", "line 40",
    ):  # fmt: skip
        assert words in text


def test_a_foreign_quarter_is_refused() -> None:
    def reader(agent):
        yield from prologue(agent)
        agent.tmem.ld(32 << 16, "32x32b", 1, site="ld of quarter 1")
        yield from epilogue(agent)

    with pytest.raises(MachineError, match=r"quarter.*ld of quarter 1"):
        Run().agents(reader)


def refreshed(run: Run, stand_alone_shift: bool) -> Program:
    """A slab that has moved gets four new rows: after .ashift, or after shifts of their own."""

    def warp0(agent):
        yield from prologue(agent)
        load_ab(agent, run)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        agent.fence("tcgen05.after", site="after")
        agent.tensor_core.cp(64, ElementAddresses(A_ROWS + A_AT), site="cp")
        multiply(agent, a=TmemAddr(64), ashift=not stand_alone_shift)
        if stand_alone_shift:
            for quarter in range(4):
                agent.tensor_core.shift(quarter << 21 | 64, site="shift")
        agent.tensor_core.cp(
            31 << 16 | 64, ElementAddresses(A_ROWS[:4] + A_AT), "4x256b", site="refresh"
        )
        multiply(agent, a=TmemAddr(64), site="mma of the moved slab")
        agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent)
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    return warp0


@pytest.mark.parametrize("seed", SEEDS)
def test_mma_shift_refresh_mma_needs_no_wait(seed: int | None) -> None:
    run = Run(seed)
    run.agents(refreshed(run, True))
    assert run.findings == []
    np.testing.assert_array_equal(run.seen["d"], product()[[*range(1, 32), 0]])


@pytest.mark.parametrize("seed", SEEDS)
def test_refresh_after_ashift_is_an_open_question(seed: int | None) -> None:
    run = Run(seed)
    run.agents(refreshed(run, False))
    assert ("error", "race") in run.codes
    run = Run(seed, assumptions=Assumptions(ashift_then_cp="ordered"))
    run.agents(refreshed(run, False))
    assert run.findings == []
    np.testing.assert_array_equal(run.seen["d"], product()[[*range(1, 32), 0]])


@pytest.mark.parametrize("rows", [32, 16])
def test_rows_nobody_wrote_matter_where_they_are_read(rows: int) -> None:
    """32 rows of A under M = 128, as DeepGEMM has it, are no error; what comes of others is NaN,
    and a finding about the mma once it is read."""
    run = Run()

    def warp0(agent):
        yield from prologue(agent)
        put(agent, C_AT, A[:rows], "rows of A")
        put(agent, B_AT, B, "B")
        agent.fence("proxy.async", site="fence")
        multiply(agent, a=C_AT)
        agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait")
        agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent)
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    run.agents(warp0)
    found = {(f.code, f.first, f.second) for f in run.findings}
    assert found == (set() if rows == 32 else {("undefined-read", "mma", "shared memory")})
    np.testing.assert_array_equal(run.seen["d"][:rows], product()[:rows])
    assert np.isnan(run.seen["d"][rows:]).all()


@pytest.mark.parametrize("accumulate", [False, True])
def test_an_accumulator_nobody_wrote(accumulate: bool) -> None:
    run = Run()

    def warp0(agent):
        yield from prologue(agent)
        load_ab(agent, run)
        yield from agent.mbarrier.wait(FULL, 0, site="wait full")
        agent.fence("tcgen05.after", site="after")
        multiply(agent, accumulate=accumulate)
        agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait")
        agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent)
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    run.agents(warp0)
    assert (("error", "undefined-read") in run.codes) == accumulate
    assert np.isnan(run.seen["d"]).all() == accumulate


def test_ctas_that_write_one_place_are_found() -> None:
    for apart in (True, False):
        run = Run(grid=2)
        base = run.machine.memory.bind(np.zeros(64, np.float32))

        def body(agent, base=base, apart=apart):
            at = base + 4 * np.arange(32) + (128 * agent.cta.index[0] if apart else 0)
            data = np.full((32, 4), 1 + agent.cta.index[0], np.uint8)
            agent.memory.store("global", at, data, site="st.global")
            yield from agent.pause()

        run.agents(body)
        assert (("error", "race") in run.codes) == (not apart)


def test_findings_are_counted_once_and_bounded() -> None:
    run = Run(grid=8)
    run.agents(*stored_operands(run, ("proxy fence",)))
    pairs = [(f.code, f.first, f.second) for f in run.findings]
    assert len(pairs) == len(set(pairs)) < 10


@pytest.mark.parametrize("parity", [0, 1])
def test_an_open_phase_tells_nothing(parity: int) -> None:
    """Warp 1 is late by luck: all of phase 0 but one arrival is over when it passes parity 1."""
    run = Run()

    def warp0(agent):
        agent.mbarrier.init(FULL, 2 - (parity == 0), site="init")
        yield from agent.barrier.sync(1, 64, site="meet")
        put(agent, A_AT, A, "write")
        agent.mbarrier.arrive(FULL, site="arrive")

    def warp1(agent):
        yield from agent.barrier.sync(1, 64, site="meet")
        for _ in range(20):
            yield from agent.pause()
        yield from agent.mbarrier.wait(FULL, parity, site="wait")
        agent.memory.load("shared", np.array([A_AT]), 16, site="read")

    run.agents(warp0, warp1)
    assert (("error", "race") in run.codes) == (parity == 1)


def test_the_second_load_lands_first() -> None:
    """Two loads of one size, the bytes of one announced: reading both is a race on one of them."""
    overtaken = set()
    for seed in range(30):
        run = Run(seed)

        def body(agent, run=run):
            agent.mbarrier.init(FULL, 1, site="init")
            agent.fence("mbarrier_init", site="fence")
            agent.mbarrier.arrive(FULL, expect_tx=B_BYTES, site="expect")
            agent.tma.load(A_AT, TensorOperand(run.map_b, (0, 0)), FULL, site="load 1")
            agent.tma.load(B_AT, TensorOperand(run.map_b, (0, 0)), FULL, site="load 2")
            yield from agent.mbarrier.wait(FULL, 0, site="wait")
            agent.memory.load("shared", np.array([A_AT]), 16, site="read 1")
            agent.memory.load("shared", np.array([B_AT]), 16, site="read 2")

        run.agents(body)
        racing = {f.first.split(" (")[0] for f in run.findings if f.code == "race"}
        assert len(racing) <= 1
        overtaken |= racing
    assert overtaken == {"load 1", "load 2"}
