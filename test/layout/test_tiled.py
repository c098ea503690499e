"""Tiled copies and mmas: whole products computed thread by thread, on definitions of the ISA.

`multiply` moves matrices as a kernel would: cp.async to shared memory, ldmatrix (or plain loads) to
registers, mma, registers back. The instructions are executed as the PTX ISA words them; only the
layouts say which address and which register. If any layout is wrong the product is wrong.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tcir.layout import (
    MMA_ATOMS,
    SWIZZLES,
    Layout,
    LayoutError,
    Tensor,
    composition,
    copy_atom,
    identity_tensor,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_mma,
    make_tmem_copy,
    mma_atom,
    row_major,
    tile_to_shape,
    zipped_divide,
)
from tcir.layout.tile import flat_divide, local_tile, raked_product, upcast
from tcir.layout.tmem import accumulator

WARP = 32


def ldmatrix(memory: np.ndarray, bits: int, rows: list[int], matrices: int, trans: bool):
    """PTX ISA 9.7.14.5.15 on a memory of bytes; returns the 32-bit registers of 32 threads."""
    assert all(row % 16 == 0 for row in rows[: 8 * matrices])
    result = np.zeros((32, matrices), np.uint32)
    for i in range(matrices):
        matrix = np.stack(
            [memory[r : r + 16].view(np.uint16) for r in rows[8 * i : 8 * i + 8]]
        ).astype(np.uint32)
        matrix = matrix.T if trans else matrix
        for thread in range(32):
            g, c = thread >> 2, thread & 3
            result[thread, i] = matrix[g, 2 * c] | matrix[g, 2 * c + 1] << 16
    return result


def bytes_of(values: np.ndarray, bits: int) -> np.ndarray:
    return values.astype({8: np.int8, 16: np.int16, 32: np.int32}[bits]).view(np.uint8)


def load_shared(matrix: np.ndarray, tensor: Tensor) -> np.ndarray:
    """Shared memory holding ``matrix`` where ``tensor`` says."""
    eb = tensor.element_bits // 8
    memory = np.zeros(1 << 15, np.uint8)
    for m, k in np.ndindex(matrix.shape):
        address = tensor.address(m, k)
        memory[address : address + eb] = bytes_of(matrix[m : m + 1, k].copy(), 8 * eb)
    return memory


def fragments(copy, mma, operand: str, tensor: Tensor, memory: np.ndarray) -> list[np.ndarray]:
    """The fragment of every thread after the copy, value by value."""
    bits, name = tensor.element_bits, copy.atom.name
    kind = {8: np.int8, 16: np.int16, 32: np.int32}[bits]
    part = getattr(mma.get_slice(0), f"partition_{operand}")(tensor)
    result = [np.full(part.size, -99, np.int64) for _ in range(mma.size)]
    for warp in range(0, mma.size, WARP):
        threads = range(warp, warp + WARP)
        slices = [copy.get_slice(t) for t in threads]
        sources = [s.partition_S(tensor) for s in slices]
        targets = []
        for s, t in zip(slices, threads):
            thr = mma.get_slice(t)
            fragment = getattr(thr, f"make_fragment_{operand}")(
                getattr(thr, f"partition_{operand}")(tensor)
            )
            targets.append(s.retile_D(fragment))
        source_run, target_run = copy.atom.src[1].size, copy.atom.dst[1].size
        assert sources[0].size // source_run == targets[0].size // target_run
        for step in range(sources[0].size // source_run):
            if name.startswith("ldmatrix"):
                rows = [s.address(step * source_run) for s in sources]
                registers = ldmatrix(memory, bits, rows, int(name[10]), name.endswith("trans"))
                values = [r.view(kind) for r in registers]
            else:
                eb = bits // 8
                values = [
                    np.concatenate(
                        [memory[a : a + eb] for a in map(s.address, range(step, step + 1))]
                    ).view(kind)
                    for s in sources
                ]
            for lane, thread in enumerate(threads):
                for v in range(target_run):
                    result[thread][targets[lane](step * target_run + v)] = values[lane][v]
    return result


def execute(atom, a: list, b: list, c: list, threads: list[int]) -> None:
    """One instruction: gathers its operands from the threads, multiplies, scatters."""
    m, n, k = atom.shape
    left, right = np.zeros((m, k), np.int64), np.zeros((n, k), np.int64)
    for t in range(len(threads)):
        for values, matrix, layout in ((a[t], left, atom.a), (b[t], right, atom.b)):
            for v in range(layout[1].size):
                index = layout(t, v)
                matrix[index % matrix.shape[0], index // matrix.shape[0]] = values[v]
    product = left @ right.T
    for t in range(len(threads)):
        for v in range(atom.c[1].size):
            index = atom.c(t, v)
            c[t][v] += product[index % m, index // m]


def multiply(mma, a_copy: str, b_copy: str, swizzle: str, a_major: str = "K") -> None:
    bits = mma.atom.a_bits
    m, n, k = (2 * extent for extent in mma.tile_shape)
    rng = np.random.default_rng(m * n + k)
    a, b = rng.integers(1, 90, (m, k)), rng.integers(1, 90, (n, k))
    sw = SWIZZLES[swizzle]
    a_layout = row_major((m, k)) if a_major == "K" else Layout((m, k))
    s_a = Tensor(a_layout, 0, bits, sw, 1024)
    s_b = Tensor(row_major((n, k)), 0, bits, sw, 2048)
    fa = fragments(
        make_tiled_copy_A(copy_atom(a_copy, bits), mma), mma, "A", s_a, load_shared(a, s_a)
    )
    fb = fragments(
        make_tiled_copy_B(copy_atom(b_copy, bits), mma), mma, "B", s_b, load_shared(b, s_b)
    )
    whole_c = Tensor(Layout((m, n)))
    slices = [mma.get_slice(t) for t in range(mma.size)]
    parts = [s.partition_C(whole_c) for s in slices]
    frag_a = slices[0].partition_fragment_A(s_a).layout
    frag_b = slices[0].partition_fragment_B(s_b).layout
    frag_c = slices[0].make_fragment_C(parts[0]).layout
    fc = [np.zeros(frag_c.size, np.int64) for _ in slices]
    for vmnk in itertools.product(*(range(mode.size) for mode in list(mma.threads)[1:])):
        threads = [mma.threads(v, *vmnk) for v in range(mma.threads[0].size)]
        for i, j, kk in itertools.product(
            *(range(x) for x in (frag_c[1].size, frag_c[2].size, frag_a[2].size))
        ):
            at = [
                [f[frag_a(v, i, kk)] for v in range(frag_a[0].size)]
                for f in (fa[t] for t in threads)
            ]
            bt = [
                [f[frag_b(v, j, kk)] for v in range(frag_b[0].size)]
                for f in (fb[t] for t in threads)
            ]
            ct = [np.zeros(frag_c[0].size, np.int64) for _ in threads]
            execute(mma.atom, at, bt, ct, threads)
            for t, values in zip(threads, ct):
                for v, value in enumerate(values):
                    fc[t][frag_c(v, i, j)] += value
    result = np.zeros(m * n, np.int64)
    for t, part in enumerate(parts):
        for i in range(part.size):
            result[part(i)] += fc[t][i]
    np.testing.assert_array_equal(result.reshape(n, m).T, a @ b.T)


WARP_ATOMS = [name for name in MMA_ATOMS if "m8n8k4" not in name]
# Loads of one tile of the atom: registers of A and of B say how many matrices ldmatrix brings.
LDMATRIX = {
    "mma.m16n8k4.tf32": ("ldmatrix.x2", "copy.b32"),
    "mma.m16n8k8.tf32": ("ldmatrix.x4", "ldmatrix.x2"),
    "mma.m16n8k8.f16": ("ldmatrix.x2", "ldmatrix.x1"),
    "mma.m16n8k16.f16": ("ldmatrix.x4", "ldmatrix.x2"),
    "mma.m16n8k32.b8": ("ldmatrix.x4", "ldmatrix.x2"),
}


@pytest.mark.parametrize("name", WARP_ATOMS)
def test_only_the_atom_changes(name: str) -> None:
    """The one line: everything else is derived from `mma`."""
    mma = make_tiled_mma(name, (2, 2, 1))
    multiply(mma, *LDMATRIX[name], "128B")


def test_without_swizzle() -> None:
    multiply(make_tiled_mma("mma.m16n8k16", (1, 2, 1)), "ldmatrix.x4", "ldmatrix.x2", "NONE")


@pytest.mark.parametrize("name", [n for n in MMA_ATOMS if "m8n8k4" in n])
def test_quad_pairs(name: str) -> None:
    multiply(make_tiled_mma(name, (2, 2, 1)), "copy.b16", "copy.b16", "NONE")


def test_the_large_tf32_kernel() -> None:
    """128 threads, tf32: a tile of N = 32, so that ldmatrix.x4 fits B; A M-major, plain loads."""
    mma = make_tiled_mma("mma.m16n8k8.tf32", Layout((2, 2, 1), (2, 1, 1)), (32, 32, 8))
    assert (mma.size, mma.tile_shape) == (128, (32, 32, 8))
    multiply(mma, "copy.b32", "ldmatrix.x4", "NONE", a_major="M")


def test_transposed_loads_of_m_major_tiles() -> None:
    mma = make_tiled_mma("mma.m16n8k16", (2, 1, 1))
    multiply(mma, "ldmatrix.x4.trans", "ldmatrix.x2", "NONE", a_major="M")


TILINGS = [
    (name, placed, tile)
    for name in WARP_ATOMS
    for placed, tile in [
        ((1, 1, 1), (None, None, None)),
        ((2, 2, 1), (None, None, None)),
        ((2, 2, 1), (64, 32, None)),
        ((1, 2, 2), (None, None, None)),
        ((2, 1, 1), (None, Layout((4, 4), (4, 1)), None)),
    ]
]


@pytest.mark.parametrize(("name", "placed", "tile"), TILINGS)
def test_partitions_cover_the_tile(name: str, placed, tile) -> None:
    mma = make_tiled_mma(name, placed, tile)
    m, n, k = mma.tile_shape
    for operand, shape, sharing in (
        ("A", (m, k), placed[1]),
        ("B", (n, k), placed[0]),
        ("C", (m, n), placed[2]),
    ):
        whole = identity_tensor(shape)
        tv = mma.layout_tv(operand)
        seen: list[int] = []
        for thread in range(mma.size):
            part = getattr(mma.get_slice(thread), f"partition_{operand}")(whole)
            assert part.indices() == [tv(thread, i) for i in range(tv[1].size)]
            seen += part.indices()
        assert sorted(seen) == sorted(list(range(whole.size)) * sharing)


@pytest.mark.parametrize("name", WARP_ATOMS)
@pytest.mark.parametrize(
    ("placed", "tile"),
    [
        ((1, 1, 1), (None,) * 3),
        ((2, 2, 1), (64, 32, 64)),
        # Rows 8 apart are neighbours in the tile, so are columns.
        ((1, 1, 1), (Layout((2, 16), (16, 1)), Layout((2, 8), (8, 1)), None)),
    ],
)
def test_retiled_registers_are_the_same_elements(name: str, placed, tile) -> None:
    """Register ``retile_D(f)(i)`` holds, by the mma, what the copy writes as its value i."""
    mma = make_tiled_mma(name, placed, tile)
    bits = mma.atom.a_bits
    for operand, make, op in zip("AB", (make_tiled_copy_A, make_tiled_copy_B), LDMATRIX[name]):
        extents = tuple(2 * e for e in mma.tile_of(operand))
        whole = Tensor(Layout(extents), 0, bits)
        copy = make(copy_atom(op, bits), mma)
        for thread in range(0, mma.size, 5):
            thr = mma.get_slice(thread)
            held = getattr(thr, f"partition_{operand}")(whole)
            fragment = getattr(thr, f"make_fragment_{operand}")(held)
            retiled = copy.get_slice(thread).retile_D(fragment)
            written = copy.get_slice(thread)._partition("D", whole)
            assert [held(retiled(i)) for i in range(retiled.size)] == written.indices()


def test_retiling_follows_the_order_of_the_copys_values() -> None:
    """Values by rows: register of (m, n) is m + 2 n in the fragment, value 2 m + n of the copy."""
    copy = make_tiled_copy(copy_atom("copy.b16", 16), Layout((4, 8)), Layout((2, 2), (2, 1)))
    retiled = copy.get_slice(3).retile_D(Tensor(Layout((1, 2, 2))))
    assert retiled.indices() == [0, 2, 1, 3]


@pytest.mark.parametrize("name", WARP_ATOMS)
def test_retiled_accumulators(name: str) -> None:
    mma = make_tiled_mma(name, (2, 2, 1), (None, 32, None))
    copy = make_tiled_copy_C(copy_atom("copy.b32", 32), mma)
    whole = Tensor(row_major((mma.tile_shape[0] * 2, mma.tile_shape[1])), 0, 32)
    for thread in range(mma.size):
        thr = mma.get_slice(thread)
        held = thr.partition_C(whole)
        retiled = copy.get_slice(thread).retile_S(thr.make_fragment_C(held))
        written = copy.get_slice(thread).partition_D(whole)
        assert [held(retiled(i)) for i in range(retiled.size)] == written.indices()


COPIES = [
    ("cp.async.16", 32, Layout((16, 8)), Layout((4, 1)), Layout((128, 16))),
    ("cp.async.16", 32, Layout((32, 4), (4, 1)), Layout((1, 4)), row_major((128, 16))),
    ("cp.async.8", 32, Layout((8, 4), (4, 1)), Layout((1, 2)), row_major((8, 8))),
    ("cp.async.4", 16, Layout((32,)), Layout((2,)), Layout((256,))),
    ("copy.b16", 16, Layout((4, 8)), Layout((2, 2)), Layout((16, 32))),
]


@pytest.mark.parametrize(("name", "bits", "threads", "values", "whole"), COPIES)
def test_tiled_copies(name, bits, threads, values, whole) -> None:
    """Thread ``threads(c)`` has block ``c``: value ``values(d)`` is element ``c * size + d``."""
    copy = make_tiled_copy(copy_atom(name, bits), threads, values)
    tensor = Tensor(whole, 0, bits)
    shape = tuple(mode.size for mode in whole)
    rank = len(shape)
    block = tuple(values[i].size if i < len(values) else 1 for i in range(rank))
    grid = tuple(threads[i].size if i < len(threads) else 1 for i in range(rank))
    assert copy.tile == tuple(b * g for b, g in zip(block, grid))
    expected: dict[int, list[int]] = {}
    for rest in itertools.product(
        *(range(s // t) for s, t in reversed(list(zip(shape, copy.tile))))
    ):
        for v in range(values.size):
            d = list(np.unravel_index(v, block, order="F"))
            number = [values(tuple(map(int, d)) if rank > 1 else int(d[0]))]
            for t in range(threads.size):
                c = np.unravel_index(t, grid, order="F")
                point = tuple(
                    int(r) * tile + int(ci) * bi + int(di)
                    for r, tile, ci, bi, di in zip(reversed(rest), copy.tile, c, block, d)
                )
                thread = threads(tuple(map(int, c)) if rank > 1 else int(c[0]))
                expected.setdefault((thread, rest, number[0]), []).append(
                    whole(point if rank > 1 else point[0])
                )
    for thread in range(copy.size):
        mine = [
            expected[thread, rest, v][0]
            for rest in itertools.product(
                *(range(s // t) for s, t in reversed(list(zip(shape, copy.tile))))
            )
            for v in range(values.size)
        ]
        assert copy.get_slice(thread).partition_S(tensor).indices() == mine
        assert copy.get_slice(thread).partition_D(tensor).indices() == mine


def test_copies_made_for_copies() -> None:
    mma = make_tiled_mma("mma.m16n8k16", (2, 1, 1))
    loads = make_tiled_copy_A(copy_atom("ldmatrix.x4", 16), mma)
    plain = copy_atom("copy.b16", 16)
    assert make_tiled_copy_D(plain, loads).tv("S").indices() == loads.tv("D").indices()
    assert make_tiled_copy_S(plain, loads).tv("D").indices() == loads.tv("S").indices()


ACCUMULATORS = [(256, 2, False), (128, 1, False), (128, 2, False), (64, 1, False), (64, 1, True),
                (32, 1, True)]  # fmt: skip


@pytest.mark.parametrize(("m", "group", "ws"), ACCUMULATORS)
@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b"])
def test_tmem_copies_cover_the_accumulator(shape: str, m: int, group: int, ws: bool) -> None:
    layout = accumulator(m, 64, cta_group=group, weight_stationary=ws)
    if m == 64 and not ws and shape == "32x32b":
        with pytest.raises(LayoutError, match="reads lane 16, column 0, which is not part"):
            make_tmem_copy(shape, 2, layout)
        return
    copy = make_tmem_copy(shape, 2, layout)
    rows = layout[0].size
    tensor = identity_tensor((rows, 64))
    seen: list[int] = []
    for thread in range(128):
        part = copy.partition(thread, tensor)
        assert [layout(i) for i in part.indices()] == [
            copy.words(thread, v) for v in range(part.size)
        ]
        assert {layout(i) % 128 // 32 for i in part.indices()} == {thread // 32}
        seen += part.indices()
    assert sorted(seen) == list(range(rows * 64))


def test_one_ld_is_the_accumulator_fragment_of_mma() -> None:
    """tcgen05.ld.16x256b.x1 gives a warp what mma.m16n8 gives it."""
    from tcir.layout.tmem import lane_column, ld_st

    fragment, words = mma_atom("mma.m16n8k16").c, ld_st("16x256b", 1)
    for thread, i in itertools.product(range(32), range(4)):
        lane, column = lane_column(words(thread, i))
        assert fragment(thread, i) == lane + 16 * column


# Tilers by definition.


def test_divides_by_definition() -> None:
    layout = Layout((8, 12), (12, 1))
    tiles = (4, 3)
    zipped, flat = zipped_divide(layout, tiles), flat_divide(layout, tiles)
    for i, j, r, s in itertools.product(range(4), range(3), range(2), range(4)):
        element = layout(4 * r + i, 3 * s + j)
        assert zipped((i, j), (r, s)) == flat(i, j, r, s) == element
        tile, offset = local_tile(layout, tiles, (r, s))
        assert offset + tile(i, j) == element
        tensor = Tensor(layout, 5).tile(tiles, (r, s))
        assert tensor(i, j) == 5 + element
        assert tensor.view(i, None)(j) == 5 + element


def test_products_by_definition() -> None:
    block = Layout((2, 4), (4, 1))
    tiled = tile_to_shape(block, (6, 8, 2))
    for i, j, k in itertools.product(range(6), range(8), range(2)):
        tile = i // 2 + 3 * (j // 4) + 6 * k
        assert tiled(i, j, k) == 8 * tile + block(i % 2, j % 4)
    raked = raked_product(block, Layout((3, 2)))
    for i, j in itertools.product(range(6), range(8)):
        assert raked(i, j) == block(i // 3, j // 2) + 8 * (i % 3 + 3 * (j % 2))


def test_upcast_by_definition() -> None:
    fine = Layout((4, 8), (128, 16))
    assert upcast(Layout((4, (16, 8)), (128, (1, 16))), 16).indices() == [
        i * 8 + k for k in range(8) for i in range(4)
    ]
    assert upcast(fine, 16).indices() == [x // 16 for x in fine.indices()]
    with pytest.raises(LayoutError, match="would be split at coordinate 4"):
        upcast(Layout(4, 3), 2)


# Bad layouts name the coordinate.


def partition(thread: int = 0, **tensor):
    mma = make_tiled_mma("mma.m16n8k16", (2, 1, 1))
    copy = make_tiled_copy_A(copy_atom("ldmatrix.x4", 16), mma)
    return copy.get_slice(thread).partition_S(Tensor(**tensor))


BAD = [
    (lambda: make_tiled_copy(copy_atom("copy.b16", 16), Layout((4, 8), (1, 2)), Layout((1, 1))),
     r"threads \(4,8\):\(1,2\): not injective, coordinates \(2, 0\) and \(0, 1\) both map to 2"),
    (lambda: make_tiled_copy(copy_atom("copy.b16", 16), Layout((4, 8), (1, 8)), Layout((1, 1))),
     r"4 is left out and coordinate \(3, 7\) is 59"),
    (lambda: make_tiled_copy(copy_atom("cp.async.16", 16), Layout((4, 8)), Layout((4, 1))),
     r"moves 8 values of 1 threads.*got 4 values of 32 threads \(thread 32, value 0 begin"),
    (lambda: make_tiled_copy(copy_atom("ldmatrix.x4", 16), Layout((4, 4)), Layout((8, 1))),
     r"got 8 values of 16 threads"),
    (lambda: partition(layout=row_major((40, 16))),
     r"multiples of \(32, 16\), got extents \(40, 16\): coordinate \(40, 0\) of the last tile"),
    (lambda: partition(layout=Layout((32, 16))),
     r"thread 0 needs rows of 16 bytes in one piece, but coordinate \(0, 1\) lies at address 64"),
    (lambda: partition(layout=Layout((32, 16), (20, 1)), thread=1),
     r"coordinate \(1, 0\) begins at address 40, which is not a multiple of 16"),
    (lambda: partition(layout=row_major((32, 16)), start=8),
     r"coordinate \(0, 0\) begins at address 8"),
    (lambda: partition(layout=row_major((32, 16)), element_bits=32),
     r"ldmatrix.x4 of 16-bit elements: got a tensor of 32-bit elements"),
    (lambda: make_tiled_copy(copy_atom("cp.async.4", 16), Layout((8, 4)), Layout((2, 1)))
        .get_slice(0).partition_D(Tensor(Layout((16, 4), (1, 8)))),
     r"destination of cp.async.4: .*coordinates \(8, 0\) and \(0, 1\) both map to 8"),
    (lambda: make_tiled_mma("mma.m16n8k16", Layout((2, 2, 1), (1, 1, 1))),
     r"share threads: coordinates \(1, 0, 0\) and \(0, 1, 0\) both map to 1"),
    (lambda: make_tiled_mma("mma.m16n8k16", (2, 1, 1), (48, None, None)),
     r"M: expected a tile of a multiple of 32.*got 48: coordinate 32 begins an atom"),
    (lambda: make_tiled_mma("mma.m16n8k16", (1, 1, 1), (None, Layout((4, 4), (1, 2)), None)),
     r"N: expected a reordering of 16, got .*both map to 2"),
    (lambda: make_tiled_mma("mma.m16n8k16").get_slice(0).partition_A(identity_tensor((16, 24))),
     r"A of mma.m16n8k16.f16 of multiples of \(16, 16\), got extents \(16, 24\): coordinate "
     r"\(0, 24\)"),
    (lambda: make_tiled_mma("mma.m16n8k16", (2, 1, 1)).get_slice(0).partition_C(
        identity_tensor((48, 8))),
     r"C of mma.m16n8k16.f16 of multiples of \(32, 8\), got extents \(48, 8\): coordinate \(48, 0"),
    (lambda: make_tiled_mma("mma.m16n8k16").get_slice(0).partition_A(identity_tensor(256)),
     "A of mma.m16n8k16.f16 of at least 2 modes, got 256:1"),
    (lambda: make_tiled_mma("mma.m16n8k16").get_slice(32), "expected one of the 32 threads"),
    (lambda: make_tiled_mma("mma.m8n8k4.f32.tn").layout_tv("A"), "so that they fill whole warps"),
    (lambda: make_tmem_copy("32x32b", 4, accumulator(128, 6)), "column 4 begins an instruction"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD)
def test_bad_layouts(make, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        make()


def test_their_smallest_good_neighbours() -> None:
    partition(layout=row_major((32, 16)))
    partition(layout=row_major((64, 32)), thread=63, swizzle=SWIZZLES["128B"], start=1024)
    partition(layout=Layout((32, 16), (24, 1)))
    assert composition(Layout(4), Layout(4)).size == 4
