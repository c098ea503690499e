"""Atoms against the fragment tables of the PTX ISA, element by element."""

from __future__ import annotations

import itertools

import pytest

from tcir.layout import COPY_OPERATIONS, MMA_ATOMS, Layout, LayoutError, copy_atom, mma_atom
from tcir.layout.scale_factors import block, memory, tensor_memory
from tcir.layout.tmem import lane_column

# PTX ISA 9.7.14.5: thread 4g + c; (row, column) of value i, for A (m, k), B (n, k), C (m, n).
C_WARP = lambda g, c, i: (g + 8 * (i >> 1), 2 * c + (i & 1))  # noqa: E731
FORMULAS = {
    "mma.m16n8k4.tf32": (
        lambda g, c, i: (g + 8 * i, c),
        lambda g, c, i: (g, c),
    ),
    "mma.m16n8k8.tf32": (
        lambda g, c, i: (g + 8 * (i & 1), c + 4 * (i >> 1)),
        lambda g, c, i: (g, c + 4 * i),
    ),
    "mma.m16n8k8.f16": (
        lambda g, c, i: (g + 8 * (i >> 1), 2 * c + (i & 1)),
        lambda g, c, i: (g, 2 * c + i),
    ),
    "mma.m16n8k16.f16": (
        lambda g, c, i: (g + 8 * ((i >> 1) & 1), 2 * c + (i & 1) + 8 * (i >> 2)),
        lambda g, c, i: (g, 2 * c + (i & 1) + 8 * (i >> 1)),
    ),
    "mma.m16n8k32.b8": (
        lambda g, c, i: (g + 8 * ((i >> 2) & 1), 4 * c + (i & 3) + 16 * (i >> 3)),
        lambda g, c, i: (g, 4 * c + (i & 3) + 16 * (i >> 2)),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_warp_atoms(name: str) -> None:
    atom = mma_atom(name)
    for operand, formula in zip("ABC", (*FORMULAS[name], C_WARP)):
        layout, (rows, columns), bits = atom.operand(operand)
        assert layout.size == rows * columns
        seen = set()
        for thread, i in itertools.product(range(32), range(layout[1].size)):
            row, column = formula(thread >> 2, thread & 3, i)
            assert layout(thread, i) == row + rows * column
            assert atom.register(operand, i) == (i * bits // 32, i % (32 // bits))
            seen.add((row, column))
        assert len(seen) == rows * columns


def quad_pair(name: str, operand: str, low: int, high: int, i: int) -> tuple[int, int]:
    """PTX ISA 9.7.14.5.1: thread ``low`` of the lower (0) or upper (1) half."""
    _, _, c_type, majors = name.split(".")
    if operand == "C":
        if c_type == "f16":
            return low + 4 * high, i
        return (low & 1) + (i & 2) + 4 * high, (i & 4) + (low & 2) + (i & 1)
    k_major = majors["AB".index(operand)] == "tn"["AB".index(operand)]
    return (low + 4 * high, i) if k_major else (i + 4 * high, low)


@pytest.mark.parametrize("name", [n for n in MMA_ATOMS if n.startswith("mma.m8n8k4")])
def test_quad_pair_atoms(name: str) -> None:
    atom = mma_atom(name)
    assert [atom.threads(i) for i in range(8)] == [0, 1, 2, 3, 16, 17, 18, 19]
    for operand in "ABC":
        layout, (rows, _), _ = atom.operand(operand)
        for t, i in itertools.product(range(8), range(layout[1].size)):
            row, column = quad_pair(name, operand, t % 4, t // 4, i)
            assert layout(t, i) == row + rows * column


def test_every_atom_is_tested() -> None:
    assert set(MMA_ATOMS) - set(FORMULAS) == {n for n in MMA_ATOMS if "m8n8k4" in n}


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
@pytest.mark.parametrize("mnemonic", ["ldmatrix", "stmatrix"])
def test_matrix_moves(mnemonic: str, matrices: int, trans: bool) -> None:
    name = f"{mnemonic}.x{matrices}{'.trans' if trans else ''}"
    atom = copy_atom(name, 16)
    rows, registers = (atom.src, atom.dst) if mnemonic == "ldmatrix" else (atom.dst, atom.src)
    for thread, k in itertools.product(range(32), range(8)):
        assert rows(thread, k) == (thread % (8 * matrices)) * 8 + k
    for thread, i, half in itertools.product(range(32), range(matrices), range(2)):
        g, c = thread >> 2, thread & 3
        row, column = (2 * c + half, g) if trans else (g, 2 * c + half)
        assert registers(thread, half + 2 * i) == 64 * i + 8 * row + column


def test_copies_of_one_thread() -> None:
    for name, size in [("cp.async.4", 4), ("cp.async.8", 8), ("cp.async.16", 16), ("copy.b32", 4)]:
        for bits in (8, 16, 32):
            atom = copy_atom(name, bits)
            assert atom.src.indices() == atom.dst.indices() == list(range(8 * size // bits))
    assert {n for n in COPY_OPERATIONS if n.startswith("cp.async")} == {
        "cp.async.4",
        "cp.async.8",
        "cp.async.16",
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mma_atom("mma.m16n8k8"), "expected one of mma.m16n8k8.tf32, mma.m16n8k8.f16"),
        (lambda: mma_atom("mma.m1n1k1"), "got mma.m1n1k1"),
        (lambda: mma_atom("mma.m16n8k16").operand("E"), "expected operand A, B, C or D, got E"),
        (lambda: mma_atom("mma.m16n8k8.tf32").with_accumulator("f16"), "got f16"),
        (lambda: copy_atom("ldmatrix.x3", 16), "got ldmatrix.x3"),
        (lambda: copy_atom("ldmatrix.x4.trans", 32), "cannot move 32-bit elements.*split"),
        (lambda: copy_atom("cp.async.4", 64), "cannot move 64-bit elements"),
    ],
)
def test_refusals(make, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        make()


def test_f16_accumulators_share_registers() -> None:
    atom = mma_atom("mma.m16n8k16").with_accumulator("f16")
    assert [atom.register("C", i) for i in range(4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_scale_factor_block() -> None:
    for row, scale in itertools.product(range(128), range(4)):
        assert block()(row, scale) == row % 32 * 16 + row // 32 * 4 + scale
    whole = memory(256, 12)
    for row, scale in itertools.product(range(256), range(12)):
        blocks = row // 128 * 3 + scale // 4
        assert whole(row, scale) == 512 * blocks + block()(row % 128, scale % 4)
    assert sorted(whole.indices()) == list(range(256 * 12))


def test_scale_factors_in_tensor_memory() -> None:
    layout = tensor_memory(256)
    for row, scale, copy in itertools.product(range(256), range(4), range(4)):
        word, byte = divmod(layout(row, scale, copy), 4)
        assert (*lane_column(word), byte) == (row % 32 + 32 * copy, row // 32, scale)


def test_the_block_is_what_the_copy_delivers() -> None:
    # tcgen05.cp.32x128b.warpx4: row i of 16 bytes goes to lane i of each quarter, 4 columns.
    there = tensor_memory(128)
    for row, scale in itertools.product(range(128), range(4)):
        lane, byte = divmod(block()(row, scale), 16)
        column, within = divmod(byte, 4)
        assert [there(row, scale, quarter) for quarter in range(4)] == [
            ((column * 128 + lane + 32 * quarter) * 4) + within for quarter in range(4)
        ]


def test_scale_factor_refusals() -> None:
    with pytest.raises(LayoutError, match=r"got 100 x 4: the block at coordinate \(0, 4\)"):
        memory(100, 4)
    with pytest.raises(LayoutError, match="got 40: column 1 is not whole"):
        tensor_memory(40)
    assert memory(128, 4).indices() == block().indices()
    assert isinstance(memory(128, 8), Layout)
