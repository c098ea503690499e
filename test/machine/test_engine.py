"""The machine through the methods of an agent: memories, tensor memory, mma, TMA, scheduling."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tcir.machine import (
    Assumptions,
    Deadlock,
    ElementAddresses,
    Machine,
    MachineError,
    SharedDesc,
    TensorOperand,
    TmemAddr,
)
from tcir.run_options import RunOptions

from .agent_programs import (
    A_AT,
    A_BYTES,
    A_ROWS,
    B_ADDRESSES,
    B_AT,
    B_BYTES,
    C_AT,
    D_AT,
    DONE,
    FULL,
    SMEM,
    WORD,
    A,
    B,
    K,
    M,
    N,
    Run,
    epilogue,
    load_ab,
    multiply,
    product,
    prologue,
    put,
    read_quarter,
)
from .issue import issue_mma, issue_mma_bits

F32_128x16 = 1 << 4 | N // 8 << 17 | M // 16 << 24
"""Instruction descriptor: f16 A and B, both K-major, f32 D."""


def alone(program, **options):
    """Runs one warp; `program` is a generator function or a plain one."""
    run = Run(**options)

    def body(agent):
        steps = program(agent)
        if steps is not None:
            yield from steps
        yield from agent.pause()

    run.agents(body)
    return run


def computed(issue, seed=None, **options):
    """D [128, 16] after `issue(agent)`, with A and B in shared memory and A in columns 64..71."""
    run = Run(seed, **options)
    parts = {}

    def body(agent):
        yield from prologue(agent)
        if agent.warp == 0:
            load_ab(agent, run)
            yield from agent.mbarrier.wait(FULL, 0, site="wait full")
            agent.fence("tcgen05.after", site="after")
            agent.tensor_core.cp(64, ElementAddresses(A_ROWS + A_AT), site="cp")
            issue(agent)
            agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        parts[agent.warp] = read_quarter(agent)
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    run.agents(body, body, body, body)
    return np.concatenate([parts[w] for w in range(4)]), run


# --- mma ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("numerics", ["exact", "fast"])
def test_mma(seed, numerics):
    d, run = computed(multiply, seed, numerics=numerics)
    np.testing.assert_array_equal(d, product())
    assert run.findings == []


def test_mma_by_descriptors():
    """No swizzle, K-major: 8 rows of 16 bytes together, SBO between groups, LBO between halves."""

    def descriptor(at, rows):
        return at >> 4 | rows * 16 >> 4 << 16 | 128 >> 4 << 32 | 1 << 46

    def split(x):
        return np.ascontiguousarray(x.reshape(len(x), 2, 8).swapaxes(0, 1))

    run = Run()

    def body(agent):
        yield from prologue(agent)
        put(agent, C_AT, split(A), "A")
        put(agent, B_AT, split(B), "B")
        agent.fence("proxy.async", site="fence")
        issue_mma_bits(
            agent,
            D_AT,
            SharedDesc(descriptor(C_AT, M)),
            descriptor(B_AT, N),
            F32_128x16,
            enable_input_d=False,
            site="mma",
        )
        agent.tensor_core.commit(DONE, site="commit")
        yield from agent.mbarrier.wait(DONE, 0, site="wait done")
        agent.fence("tcgen05.after", site="after")
        run.seen["d"] = read_quarter(agent)
        agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    run.agents(body)
    np.testing.assert_array_equal(run.seen["d"], product()[:32])
    assert run.findings == []


def test_a_comes_from_tensor_memory_unshifted_and_moves_afterwards():
    moved = np.array([m if m % 32 == 31 else m + 1 for m in range(M)])

    def issue(agent):
        multiply(agent, a=TmemAddr(64), ashift=True)
        multiply(agent, a=TmemAddr(64), ashift=True, accumulate=True)
        multiply(agent, a=TmemAddr(64), accumulate=True)

    d, run = computed(issue, 5)
    np.testing.assert_array_equal(d, product() + product()[moved] + product()[moved][moved])
    assert run.findings == []


def test_disabled_lanes_keep_their_accumulator():
    masks = (0x80000001, 0, 0xFFFFFFFF, 0x00010000)
    off = np.array([masks[m // 32] >> m % 32 & 1 for m in range(M)], bool)

    def issue(agent):
        multiply(agent)
        multiply(agent, accumulate=True, disable_lanes=masks)

    d, _ = computed(issue)
    np.testing.assert_array_equal(d, np.where(off[:, None], 1, 2) * product())


def test_masked_lanes_of_a_first_mma_are_undefined():
    d, run = computed(lambda agent: multiply(agent, disable_lanes=(1, 0, 0, 0)))
    assert np.isnan(d[0]).all()
    np.testing.assert_array_equal(d[1:], product()[1:])
    assert ("error", "undefined-read") in run.codes


def test_input_d_is_scaled():
    def issue(agent):
        multiply(agent)
        multiply(agent, accumulate=True, scale_input_d=2)

    np.testing.assert_array_equal(computed(issue)[0], 1.25 * product())


@pytest.mark.parametrize(
    "code,flags",
    [
        ("ashift-operand", {"ashift": True}),
        ("ashift-collector", {"ashift": True, "a": TmemAddr(64), "collector": "fill"}),
        ("ashift-collector", {"ashift": True, "a": TmemAddr(64), "collector": "use"}),
        ("lane-mask", {"disable_lanes": (0, 0)}),
        ("tensor-memory-lane", {"d": 32 << 16}),
        ("tensor-memory-lane", {"a": TmemAddr(32 << 16 | 64)}),
        ("tensor-memory-columns", {"d": 120}),
        ("tensor-memory-columns", {"a": TmemAddr(124)}),
        ("out-of-bounds", {"a": SMEM - 256}),
        ("misaligned", {"a": 1}),
    ],
)
def test_mma_refuses(code, flags):
    with pytest.raises(MachineError) as caught:
        computed(lambda agent: multiply(agent, **flags))
    assert caught.value.code == code
    assert caught.value.site == "mma"


@pytest.mark.parametrize("m,n", [(128, 0), (128, 264), (256, 16), (32, 64), (64, 12)])
def test_shapes_that_do_not_exist(m, n):
    def issue(agent):
        a = ElementAddresses(np.zeros((m, K), np.int64))
        b = ElementAddresses(np.zeros((max(n, 1), K), np.int64))
        issue_mma(agent, 0, a, b, m, n, "f16", "f16", enable_input_d=False, site="mma")

    with pytest.raises(MachineError, match="mma-shape"):
        computed(issue)


def test_pairs_of_ctas_need_a_cluster():
    def issue(agent):
        a, b = TmemAddr(64), ElementAddresses(B_ADDRESSES, B_AT)
        issue_mma(
            agent, 0, a, b, 256, 16, "f16", "f16", enable_input_d=False, cta_group=2, site="mma"
        )

    with pytest.raises(MachineError, match="cta-group-mixed"):
        computed(issue)


# --- tensor memory -----------------------------------------------------------------------------


def allocation(*columns, again=0, relinquish=False):
    def program(agent):
        for n in columns:
            yield from agent.tmem.alloc(WORD, n, site="alloc")
        if relinquish:
            agent.tmem.relinquish(site="relinquish")
        if again:
            agent.tmem.dealloc(0, columns[0], site="dealloc")
            yield from agent.tmem.alloc(WORD, again, site="alloc again")

    return program


@pytest.mark.parametrize("n", [0, 16, 31, 48, 1024])
def test_column_counts_that_do_not_exist(n):
    with pytest.raises(MachineError, match=f"got {n}:"):
        alone(allocation(n))


@pytest.mark.parametrize("n", [32, 64, 128, 256, 512])
def test_column_counts_that_do(n):
    run = alone(allocation(n))
    assert run.codes == {("error", "tensor-memory-leak")}


def test_allocation_rules():
    with pytest.raises(MachineError, match="tensor-memory-growth"):
        alone(allocation(64, again=128))
    with pytest.raises(MachineError, match="tensor-memory-relinquished"):
        alone(allocation(64, again=64, relinquish=True))
    with pytest.raises(Deadlock, match="32 free columns"):
        alone(allocation(256, 256, 32))
    alone(allocation(64, again=64))


@pytest.mark.parametrize("base,columns", [(0, 64), (32, 128), (1 << 16, 128)])
def test_dealloc_of_something_else(base, columns):
    def program(agent):
        yield from agent.tmem.alloc(WORD, 128, site="alloc")
        agent.tmem.dealloc(base, columns, site="dealloc")

    with pytest.raises(MachineError, match="tensor-memory-dealloc"):
        alone(program)


@pytest.mark.parametrize(
    "shape,num,lanes",
    [("32x32b", 8, 32), ("16x64b", 4, 16), ("16x128b", 4, 16), ("16x256b", 2, 16)],
)
def test_ld_brings_back_what_st_wrote(shape, num, lanes):
    seen = {}

    def program(agent):
        yield from prologue(agent)
        values = None
        for half in range(32 // lanes):
            at = half * lanes << 16
            registers = agent_registers[shape] * num
            values = np.arange(registers * 32, dtype=np.uint32).reshape(registers, 32) + 7 * half
            agent.tmem.st(at, shape, num, values, site="st")
            agent.tmem.wait("st", site="wait st")
            seen[half] = values, agent.tmem.ld(at, shape, num, site="ld")
            agent.tmem.wait("ld", site="wait ld")
        yield from epilogue(agent)

    agent_registers = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}
    run = alone(program)
    for written, read in seen.values():
        np.testing.assert_array_equal(read, written)
    assert run.findings == []


def test_shift_moves_a_quarter_or_all():
    for choice, quarters in (("one", [1]), ("all", [0, 1, 2, 3])):
        moved = np.arange(M)
        for q in quarters:
            moved[32 * q : 32 * q + 31] += 1

        def issue(agent):
            issue_mma(
                agent,
                96,
                TmemAddr(64),
                ElementAddresses(B_ADDRESSES, B_AT),
                M,
                N,
                "f16",
                "f16",
                enable_input_d=False,
                site="keeps cp before shift",
            )
            agent.tensor_core.shift(32 << 16 | 64, site="shift")
            multiply(agent, a=TmemAddr(64))

        d, _ = computed(issue, assumptions=Assumptions(shift_quarters=choice))
        np.testing.assert_array_equal(d, product()[moved])


# --- memories ----------------------------------------------------------------------------------


def test_pointers_outside_name_the_nearest_buffer():
    run = Run()
    base = run.machine.memory.bind(np.zeros(10, np.float32))
    assert base % 256 == 0

    def body(agent):
        agent.memory.load("global", np.array([base + 40]), 4, site="ld.global")
        yield from agent.pause()

    with pytest.raises(MachineError, match="40 bytes from the start of the nearest, which has 40"):
        run.agents(body)


def test_undefined_bytes():
    run = Run()
    base = run.machine.memory.bind(np.zeros(8, np.float32), initialized=False)

    def body(agent):
        agent.memory.store("global", np.array([base]), np.ones((1, 4), np.uint8), site="st")
        agent.memory.load("global", np.array([base]), 4, site="written")
        agent.memory.load("global", np.array([base + 4]), 4, site="unwritten global")
        agent.memory.load("shared", np.array([64]), 4, site="unwritten shared")
        yield from agent.pause()

    run.agents(body)
    assert [(f.code, f.first) for f in run.findings] == [
        ("undefined-read", "unwritten global"),
        ("undefined-read", "unwritten shared"),
    ]


def test_shared_memory_is_limited():
    with pytest.raises(MachineError, match="227 KB"):
        Machine(grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem=227 * 1024 + 1).run(lambda cta: [])


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_tma_fills_outside_with_zero_and_stores_what_is_inside(seed):
    run = Run(seed)

    def body(agent):
        agent.mbarrier.init(FULL, 1, site="init")
        agent.fence("mbarrier_init", site="fence")
        agent.mbarrier.arrive(FULL, expect_tx=A_BYTES, site="expect")
        agent.tma.load(A_AT, TensorOperand(run.map_a, (0, 100)), FULL, site="load")
        yield from agent.mbarrier.wait(FULL, 0, site="wait")
        agent.tma.store(A_AT, TensorOperand(run.map_out, (0, 3)), site="store")
        agent.bulk.commit(site="commit")
        yield from agent.bulk.wait(0, site="bulk wait")

    run.agents(body)
    expected = np.zeros_like(A)
    expected[3:31] = A[100:]
    np.testing.assert_array_equal(run.out, expected)
    assert run.findings == []
    counters = run.machine.counters
    assert counters.global_to_shared == A_BYTES
    assert counters.global_to_shared_read == 28 * 2 * K


# --- the run -----------------------------------------------------------------------------------


def test_counters():
    _, run = computed(lambda agent: (multiply(agent), multiply(agent, a=TmemAddr(64), d=32)))
    counters = run.machine.counters
    assert counters.mma == 2
    assert counters.cp == 1
    assert counters.commit == 1
    assert counters.tma_loads == 2
    assert counters.global_to_shared == A_BYTES + B_BYTES
    assert counters.shared_to_tmem == A_BYTES
    assert counters.shared_to_tensor == 32 * (M + N + N)
    assert counters.tensor_cycles == 32 * (M + N) // 128 + N // 2
    assert counters.tmem_load == 4 * M * N


def test_every_cta_runs_once_with_its_index():
    seen = []
    machine = Machine(grid=(3, 2, 2), block=(32, 1, 1), options=RunOptions(1))

    def body(agent):
        seen.append(agent.cta.index)
        yield from agent.pause()

    machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=body)])
    assert sorted(seen) == sorted((x, y, z) for x in range(3) for y in range(2) for z in range(2))


def test_a_seed_decides_the_order():
    def order(seed):
        trace = []

        def body(agent):
            for _ in range(5):
                trace.append(agent.warp)
                yield from agent.pause()

        Run(seed).agents(body, body, body)
        return tuple(trace)

    orders = [order(seed) for seed in range(8)]
    assert orders == [order(seed) for seed in range(8)]
    assert len(set(orders)) > 5


def test_a_thousand_ctas_in_bounded_memory():
    machine = Machine(grid=(1000, 1, 1), block=(32, 1, 1), dynamic_smem=64 * 1024)

    def body(agent):
        put(agent, 0, A, "store")
        yield from agent.pause()

    tracemalloc.start()
    machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=body)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6  # all of them at once: more than a gigabyte
