"""copy, fill, gemm and view: each by its definition, then kernels written with them.

A definition is a loop over coordinates. Instructions have two: fragments by ``partition_A`` of the
mma (who must hold what), and the words of the PTX ISA for ldmatrix.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tcir.layout import (
    MMA_ATOMS,
    SWIZZLES,
    Layout,
    LayoutError,
    Tensor,
    copy_atom,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_mma,
    row_major,
)
from tcir.layout.algorithms import copy, fill, gemm, make_tensor

LAYOUTS = [
    Layout(24),
    Layout(24, 3),
    Layout((4, 6)),
    Layout((4, 6), (6, 1)),
    Layout((4, 6), (10, 1)),
    Layout(((2, 2), (3, 2)), ((1, 12), (2, 6))),
    Layout((2, 3, 4), (12, 4, 1)),
]


def numbered(layout: Layout, first: int = 0) -> Tensor:
    """Memory that holds its own positions, counted from ``first``."""
    return make_tensor(np.arange(first, first + 100, dtype=np.int32), layout)


def value(tensor: Tensor, *coordinate: int) -> int:
    """The element at ``coordinate``, of a tensor without a swizzle."""
    return tensor.engine[tensor(*coordinate)]


@pytest.mark.parametrize("target", LAYOUTS, ids=str)
@pytest.mark.parametrize("source", LAYOUTS, ids=str)
def test_copy_by_definition(source: Layout, target: Layout) -> None:
    s, d = numbered(source), numbered(target, -200)
    copy(s, d)
    for i in range(24):
        assert value(d, i) == value(s, i) == source(i)
    others = set(range(100)) - set(target.indices())
    assert all(d.engine[i] == i - 200 for i in others)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_fill_by_definition(layout: Layout) -> None:
    t = numbered(layout)
    fill(t, -1)
    assert [i for i in range(100) if t.engine[i] == -1] == sorted(layout.indices())


def test_view_by_definition() -> None:
    t = numbered(Layout((4, (3, 2), 2), (6, (2, 30), 1)))
    for i, j, k in itertools.product(range(4), range(6), range(2)):
        assert value(t.view(None, None, k), i, j) == value(t, i, j, k)
        assert value(t.view(i, None, None), j, k) == value(t, i, j, k)
        assert value(t.view(None, (j % 3, j // 3), k), i) == value(t, i, j, k)
    part = t.view(None, 1, None)
    fill(part, -1)
    changed = {t(i, 1, k) for i in range(4) for k in range(2)}
    assert set(np.flatnonzero(t.engine == -1)) == changed


@pytest.mark.parametrize("a_layout", [Layout((4, 6)), Layout((4, 6), (10, 1)), LAYOUTS[5]], ids=str)
@pytest.mark.parametrize("b_layout", [Layout((5, 6)), Layout((5, 6), (6, 1))], ids=str)
@pytest.mark.parametrize("c_layout", [Layout((4, 5)), Layout((4, 5), (5, 1))], ids=str)
def test_gemm_by_definition(a_layout: Layout, b_layout: Layout, c_layout: Layout) -> None:
    a, b, c = numbered(a_layout), numbered(b_layout, 7), numbered(c_layout, -50)
    before = c.engine.copy()
    gemm(a, b, c)
    for m, n in itertools.product(range(4), range(5)):
        total = sum(int(value(a, m, k)) * int(value(b, n, k)) for k in range(6))
        assert value(c, m, n) == before[c(m, n)] + total


def test_gemm_of_columns_is_the_outer_product() -> None:
    a, b, c = numbered(Layout(4, 2)), numbered(Layout(5), 3), numbered(Layout((4, 5), (5, 1)))
    gemm(a, b, c)
    for m, n in itertools.product(range(4), range(5)):
        assert value(c, m, n) == c(m, n) + value(a, m) * value(b, n)


def test_types_are_converted_as_in_an_assignment() -> None:
    s = make_tensor(np.array([1.0, 1.001, -2.75, 300.0], np.float32))
    for kind in (np.float16, ml_dtypes.bfloat16, np.int32):
        d = make_tensor(kind, Layout(4))
        copy(s, d)
        np.testing.assert_array_equal(d.engine, s.engine.astype(kind))
    # Sums are exact and rounded once: 2048 + 1 + 1 is 2050 in f16, which 2048 + 1 never leaves.
    c = make_tensor(np.array([[2048.0]], np.float16))
    one = make_tensor(np.ones((1, 2), np.float16))
    gemm(one, one, c)
    assert c.engine[0] == 2050


def test_arrays_are_shared() -> None:
    for order in "CF":
        array = np.zeros((3, 4), np.int32, order=order)
        fill(make_tensor(array).view(1, None), 5)
        np.testing.assert_array_equal(array, [[0] * 4, [5] * 4, [0] * 4])


# Instructions.

WARP_ATOMS = [name for name in MMA_ATOMS if "m8n8k4" not in name]
LOADS = {
    "mma.m16n8k4.tf32": ("ldmatrix.x2", "copy.b32"),
    "mma.m16n8k8.tf32": ("ldmatrix.x4", "ldmatrix.x2"),
    "mma.m16n8k8.f16": ("ldmatrix.x2", "ldmatrix.x1"),
    "mma.m16n8k16.f16": ("ldmatrix.x4", "ldmatrix.x2"),
    "mma.m16n8k32.b8": ("ldmatrix.x4", "ldmatrix.x2"),
}
KINDS = {8: np.int8, 16: np.int16, 32: np.int32}


def test_ldmatrix_by_the_words_of_the_isa() -> None:
    """Thread 8i + j names row j of matrix i; 4g + c gets columns 2c and 2c + 1 of row g.

    With .trans it gets rows 2c and 2c + 1 of column g.
    """
    s = make_tensor(np.arange(256, dtype=np.int16).reshape(16, 16))
    mma = make_tiled_mma("mma.m16n8k16")
    for name in ("ldmatrix.x4", "ldmatrix.x4.trans"):
        if name.endswith("trans"):
            s = make_tensor(np.arange(256, dtype=np.int16), Layout((16, 16)))
        load = make_tiled_copy_A(copy_atom(name, 16), mma)
        registers = [make_tensor(np.int16, Layout((8, 1, 1))) for _ in range(32)]
        slices = [load.get_slice(t) for t in range(32)]
        sources = [thr.partition_S(s) for thr in slices]
        copy(sources, [thr.retile_D(r) for thr, r in zip(slices, registers)], load)
        rows = [s.engine[source.offset :][:8] for source in sources]
        for t, i, half in itertools.product(range(32), range(4), range(2)):
            g, c = t // 4, t % 4
            matrix = np.array(rows[8 * i : 8 * i + 8])
            matrix = matrix.T if name.endswith("trans") else matrix
            assert registers[t].engine[2 * i + half] == matrix[g, 2 * c + half]


@pytest.mark.parametrize("swizzle", ["NONE", "128B"])
@pytest.mark.parametrize("name", WARP_ATOMS)
def test_loads_bring_each_thread_its_fragment(name: str, swizzle: str) -> None:
    """Value i of the fragment is element ``partition_A(s)(i)`` of shared memory."""
    mma = make_tiled_mma(name, (2, 1, 1), (None, 16, None))
    bits = mma.atom.a_bits
    for operand, make, op in zip("AB", (make_tiled_copy_A, make_tiled_copy_B), LOADS[name]):
        rows, columns = mma.tile_of(operand)
        extents = rows, 2 * columns
        s = make_tensor(KINDS[bits], row_major(extents), SWIZZLES[swizzle])
        elements = np.arange(s.size).reshape(extents).astype(KINDS[bits])
        copy(make_tensor(elements), s)
        load = make(copy_atom(op, bits), mma)
        held = [getattr(mma.get_slice(t), f"partition_{operand}")(s) for t in range(mma.size)]
        registers = [make_tensor(KINDS[bits], Layout(part.shape)) for part in held]
        slices = [load.get_slice(t) for t in range(mma.size)]
        copy(
            [thr.partition_S(s) for thr in slices],
            [thr.retile_D(r) for thr, r in zip(slices, registers)],
            load,
        )
        for part, mine in zip(held, registers):
            assert [int(x) for x in mine.engine] == [
                int(elements.reshape(-1)[i]) for i in part.indices()
            ]


@pytest.mark.parametrize("name", ["stmatrix.x4", "stmatrix.x2.trans"])
def test_stores_put_fragments_back(name: str) -> None:
    mma = make_tiled_mma("mma.m16n8k16", (2, 1, 1), (None, 16, None))
    trans = name.endswith("trans")
    d = make_tensor(np.int16, Layout((32, 16)) if trans else row_major((32, 16)))
    store = make_tiled_copy_C(copy_atom(name, 16), mma)
    slices = [(mma.get_slice(t), store.get_slice(t)) for t in range(mma.size)]
    held = [thr.partition_C(d) for thr, _ in slices]
    registers = [
        make_tensor(np.array(part.indices(), np.int16) + 1, Layout(part.shape)) for part in held
    ]
    sources = [thr.retile_S(r) for (_, thr), r in zip(slices, registers)]
    copy(sources, [thr.partition_D(d) for _, thr in slices], store)
    np.testing.assert_array_equal(d.engine, np.arange(1, 513))


@pytest.mark.parametrize("name", MMA_ATOMS)
@pytest.mark.parametrize("placed", [(1, 1, 1), (2, 2, 1)])
def test_instructions_multiply(name: str, placed: tuple[int, int, int]) -> None:
    """Fragments by plain copies of the partitions; products of integers are numpy's."""
    mma = make_tiled_mma(name, placed)
    m, n, k = (2 * extent for extent in mma.tile_shape)
    numbers = np.random.default_rng(m + n + k)
    a, b = numbers.integers(-9, 10, (m, k)), numbers.integers(-9, 10, (n, k))
    c = numbers.integers(-9, 10, (m, n))
    result = product(mma, a, b, c)
    np.testing.assert_array_equal(result, c + a @ b.T)


def product(mma, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """c + a b^T with ``mma``, every operand read through its partition."""
    g_a, g_b, g_c = (make_tensor(x.astype(np.int32)) for x in (a, b, c.copy()))
    slices = [mma.get_slice(t) for t in sorted(mma.threads.indices())]
    parts = [
        [getattr(thr, f"partition_{x}")(g) for thr in slices]
        for x, g in zip("ABC", (g_a, g_b, g_c))
    ]
    fragments = [[make_tensor(np.int32, Layout(p.shape)) for p in group] for group in parts]
    for group, registers in zip(parts, fragments):
        copy(group, registers)
    gemm(*fragments, mma)
    copy(fragments[2], parts[2])
    return g_c.engine.reshape(c.shape)


def test_a_wrong_fragment_is_a_wrong_product(monkeypatch: pytest.MonkeyPatch) -> None:
    mma = make_tiled_mma("mma.m16n8k16")
    a = np.arange(256).reshape(16, 16)
    b, c = np.arange(128).reshape(8, 16), np.zeros((16, 8), np.int64)
    good = product(mma, a, b, c)
    wrong = make_tiled_mma("mma.m16n8k16", (1, 1, 1), (Layout((8, 2), (2, 1)), None, None))
    assert (product(wrong, a, b, c) == good).all()  # rows of A and C permuted alike
    swapped = replace(mma.atom, b=Layout(((4, 8), (2, 2)), ((16, 1), (64, 8))))
    fragments = make_tiled_mma(swapped)
    assert (product(fragments, a, b, c) == good).all()  # B loaded and used by the same layout
    slices = [mma.get_slice(t) for t in range(32)]
    g_a, g_b = (make_tensor(x.astype(np.int32)) for x in (a, b))
    r_a = [make_tensor(np.int32, Layout((8, 1, 1))) for _ in slices]
    r_b = [make_tensor(np.int32, Layout((4, 1, 1))) for _ in slices]
    r_c = [make_tensor(np.int32, Layout((4, 1, 1))) for _ in slices]
    copy([thr.partition_A(g_a) for thr in slices], r_a)
    copy([fragments.get_slice(t).partition_B(g_b) for t in range(32)], r_b)
    gemm(r_a, r_b, r_c, mma)
    g_c = make_tensor(np.zeros((16, 8), np.int32))
    copy(r_c, [thr.partition_C(g_c) for thr in slices])
    assert (g_c.engine.reshape(16, 8) != good).any()


def test_accumulators_are_rounded_by_every_instruction() -> None:
    """f16 accumulators: 2048 + 1 stays 2048 twice; both at once, in a k16, would give 2050."""
    for name, expected in (("mma.m16n8k8.f16", 2048), ("mma.m16n8k16.f16", 2050)):
        mma = make_tiled_mma(name)
        a, b = np.zeros((16, 16), np.float16), np.ones((8, 16), np.float16)
        a[0, 0] = a[0, 8] = 1
        g_a, g_b = make_tensor(a), make_tensor(b)
        slices = [mma.get_slice(t) for t in range(32)]
        held = [thr.partition_A(g_a) for thr in slices], [thr.partition_B(g_b) for thr in slices]
        r_a, r_b = ([make_tensor(np.float16, Layout(p.shape)) for p in parts] for parts in held)
        copy(held[0], r_a)
        copy(held[1], r_b)
        r_c = [make_tensor(np.float16, Layout((4, 1, 1))) for _ in slices]
        for registers in r_c:
            fill(registers, 2048)
        gemm(r_a, r_b, r_c, mma)
        assert r_c[0].engine[0] == expected


# Kernels.


def registers(kind, parts: list[Tensor]) -> list[Tensor]:
    return [make_tensor(kind, Layout(part.shape)) for part in parts]


def test_one_tile_with_plain_loads() -> None:
    """tf32, 16 x 8 x 8: cp.async to shared memory, plain loads, one mma. A is M-major."""
    a = np.asfortranarray(np.arange(1, 129, dtype=np.float32).reshape(16, 8, order="F"))
    b = np.arange(1, 65, dtype=np.float32).reshape(8, 8)
    c = np.ones((16, 8), np.float32)
    g_a, g_b, g_c = map(make_tensor, (a, b, c))
    s_a = make_tensor(np.float32, Layout((16, 8)))
    s_b = make_tensor(np.float32, row_major((8, 8)))
    copy_a = make_tiled_copy(copy_atom("cp.async.16", 32), Layout((4, 8)), Layout((4, 1)))
    copy_b = make_tiled_copy(copy_atom("cp.async.8", 32), Layout((8, 4), (4, 1)), Layout((1, 2)))
    mma = make_tiled_mma("mma.m16n8k8.tf32")
    for loads, g, s in ((copy_a, g_a, s_a), (copy_b, g_b, s_b)):
        for t in range(32):
            thr = loads.get_slice(t)
            copy(thr.partition_S(g), thr.partition_D(s), loads)
    threads = [mma.get_slice(t) for t in range(32)]
    t_a, t_b = [t.partition_A(s_a) for t in threads], [t.partition_B(s_b) for t in threads]
    t_c = [t.partition_C(g_c) for t in threads]
    r_a, r_b, r_c = (registers(np.float32, parts) for parts in (t_a, t_b, t_c))
    for mine in r_c:
        fill(mine, 0)
    copy(t_a, r_a)
    copy(t_b, r_b)
    gemm(r_a, r_b, r_c, mma)
    copy(r_c, t_c)
    np.testing.assert_array_equal(c, a @ b.T)


def double_buffered(a: np.ndarray, b: np.ndarray, *, flip: bool = True) -> np.ndarray:
    """128 x 128 x K in steps of 16, 128 threads, two slots of shared memory; K steps of 8 are
    loaded one ahead. ``flip=False`` forgets to change the slot."""
    c = np.zeros((128, 128), np.float32)
    g_a, g_b, g_c = map(make_tensor, (a, b, c))
    cut_a, cut_b = (g.tile((128, 16), (0, 0)) for g in (g_a, g_b))
    assert cut_a.size == cut_b.size == 128 * 16
    steps = a.shape[1] // 16
    s_a = make_tensor(np.float32, Layout((128, 16, 2), (1, 128, 2048)))
    s_b = make_tensor(np.float32, Layout((128, 16, 2), (16, 1, 2048)))
    mma = make_tiled_mma("mma.m16n8k8.tf32", Layout((2, 2, 1), (2, 1, 1)), (32, 32, 8))
    load_a = make_tiled_copy(copy_atom("cp.async.16", 32), Layout((16, 8)), Layout((4, 1)))
    load_b = make_tiled_copy(copy_atom("cp.async.16", 32), Layout((32, 4), (4, 1)), Layout((1, 4)))
    smem_a = make_tiled_copy_A(copy_atom("copy.b32", 32), mma)
    smem_b = make_tiled_copy_B(copy_atom("ldmatrix.x4", 32), mma)
    threads = range(mma.size)

    def fetch(tile: int, slot: int) -> None:
        for loads, g, s in ((load_a, g_a, s_a), (load_b, g_b, s_b)):
            source, target = g.tile((128, 16), (0, tile)), s.view(None, None, slot)
            slices = [loads.get_slice(t) for t in threads]
            copy(
                [x.partition_S(source) for x in slices],
                [x.partition_D(target) for x in slices],
                loads,
            )

    thr = [mma.get_slice(t) for t in threads]
    t_c = [x.partition_C(g_c) for x in thr]
    r_a = registers(np.float32, [x.partition_A(s_a.view(None, None, 0)) for x in thr])
    r_b = registers(np.float32, [x.partition_B(s_b.view(None, None, 0)) for x in thr])
    r_c = registers(np.float32, t_c)
    from_a = [smem_a.get_slice(t).partition_S(s_a) for t in threads]
    from_b = [smem_b.get_slice(t).partition_S(s_b) for t in threads]
    to_a = [smem_a.get_slice(t).retile_D(r_a[t]) for t in threads]
    to_b = [smem_b.get_slice(t).retile_D(r_b[t]) for t in threads]

    def load(block: int, slot: int) -> None:
        copy(
            [x.view(None, None, block, slot) for x in from_a],
            [x.view(None, None, block) for x in to_a],
            smem_a,
        )
        copy(
            [x.view(None, None, block, slot) for x in from_b],
            [x.view(None, None, block) for x in to_b],
            smem_b,
        )

    read, write = 0, 1
    fetch(0, 0)
    load(0, 0)
    blocks = r_a[0].layout[2].size
    assert blocks == 2
    for tile in range(steps):
        for block in range(blocks):
            if block == blocks - 1:
                load(0, read)
            else:
                load(block + 1, read)
            if block == 0 and tile + 1 < steps:
                fetch(tile + 1, write)
                if flip:
                    read, write = write, read
            gemm(
                [x.view(None, None, block) for x in r_a],
                [x.view(None, None, block) for x in r_b],
                r_c,
                mma,
            )
    copy(r_c, t_c)
    return c


def test_double_buffering() -> None:
    numbers = np.random.default_rng(4)
    a = np.asfortranarray(numbers.integers(-4, 5, (128, 32)).astype(np.float32))
    b = numbers.integers(-4, 5, (128, 32)).astype(np.float32)
    np.testing.assert_array_equal(double_buffered(a, b), a @ b.T)
    assert (double_buffered(a, b, flip=False) != a @ b.T).any()


# Refusals.

VALUES = make_tensor(np.arange(8, dtype=np.int32))
LOAD = make_tiled_copy_A(copy_atom("ldmatrix.x4", 16), make_tiled_mma("mma.m16n8k16"))
F16 = make_tensor(np.float16, row_major((16, 16)))
SOURCES = [LOAD.get_slice(t).partition_S(F16) for t in range(32)]
BAD = [
    (lambda: fill(Tensor(Layout(4)), 0), "got the layout 4:1 alone; make_tensor gives it memory"),
    (lambda: copy(VALUES, make_tensor(np.int32, Layout(9))), "of 8 elements and 9:1 of 9"),
    (lambda: copy([VALUES], [VALUES, VALUES]), "as many sources as destinations, got 1 and 2"),
    (lambda: copy(VALUES, make_tensor(np.int32, Layout((4, 2), (1, 2)))),
     r"destination of copy: .*coordinates \(2, 0\) and \(0, 1\) both map to 2"),
    (lambda: copy(SOURCES[0], SOURCES[0], LOAD), "executed by 32 threads.*got 1"),
    (lambda: copy(SOURCES, [make_tensor(np.float32, Layout(8))] * 32, LOAD),
     "moves bits: expected 8 elements of float16, got 8 of float32"),
    (lambda: copy(SOURCES, [make_tensor(np.float16, Layout(4))] * 32, LOAD), "got 4 of float16"),
    (lambda: make_tensor(np.zeros(4), Layout((2, 3))),
     r"a memory of 4, but coordinate \(0, 2\) of \(2,3\):\(1,2\) is element 4"),
    (lambda: make_tensor(np.zeros((4, 4))[:, :2]), "expected an array without gaps"),
    (lambda: make_tensor(np.float32), "expected a layout for new memory"),
    (lambda: gemm(F16, VALUES, F16), r"expected \(M, K\) x \(N, K\) -> \(M, N\), got \(16, 16\) x"),
    (lambda: gemm([F16], [F16], [F16]), "or the mma of these threads"),
    (lambda: gemm([F16], [F16], [F16], make_tiled_mma("mma.m16n8k16")),
     "all 32 threads of the tiled mma together: expected a fragment of each, got 1, 1 and 1"),
    (lambda: gemm([F16] * 32, [F16] * 32, [F16] * 32, make_tiled_mma("mma.m16n8k16")),
     r"with MMA of 8, 4, 4, got \(16, 16\) x \(16, 16\) -> \(16, 16\)"),
    (lambda: gemm(make_tensor(np.int32, Layout((2, 2, 2))), VALUES, VALUES),
     r"expected at most 2 modes, got \(2,2,2\)"),
    (lambda: F16.view(None), "for each of the 2 modes of .*, got 1"),
    (lambda: F16.view(None, 16), "expected a coordinate of 0 to 15, got 16"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD)
def test_refusals(make, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        make()


def test_their_good_neighbours() -> None:
    copy(VALUES, make_tensor(np.int32, Layout((4, 2), (1, 4))))
    copy(SOURCES, [make_tensor(np.float16, Layout(8)) for _ in range(32)], LOAD)
    make_tensor(np.zeros(6), Layout((2, 3)))
    make_tensor(np.zeros((4, 4))[:2])
    assert F16.view(None, 15).size == 16
