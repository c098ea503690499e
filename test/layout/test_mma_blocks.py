"""Every mma.sync of a whole warp is 8 x 8 x 128-bit blocks; what m8n8k4 and m16n8k16 cost.

The block comes from `mma_block` alone; fragments of whole instructions from the atoms (which
test_atoms.py holds against the PTX ISA) and, for the types without an atom, from the PTX rules.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tcir.interp.ptx.isa.mma.mma_sync import _SHAPES
from tcir.interp.ptx.isa.values import fragments
from tcir.layout import (
    MMA_ATOMS,
    Layout,
    LayoutError,
    composition,
    concatenate,
    identity_tensor,
    make_tiled_mma,
    mma_atom,
    zipped_divide,
)
from tcir.layout.algorithms import gemm, make_tensor
from tcir.layout.atoms.mma_block import BLOCK_BITS, TYPES, mma_block
from tcir.layout.mma_counts import mma_counts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "matmul-warp.md"
WARP_ATOMS = [name for name in MMA_ATOMS if "m8n8k4" not in name]
SHAPES = [
    (bits, *map(int, re.findall(r"\d+", shape)))
    for bits, shapes in _SHAPES.items()
    for shape in shapes
    if bits != 64 and not (bits == 16 and shape == "m8n8k4")
]


@pytest.mark.parametrize("bits", TYPES)
def test_the_block_by_its_words(bits: int) -> None:
    """Thread 4g + c: bits 32c to 32c + 31 of row g; columns 2c and 2c + 1 of row g of C."""
    block, held = mma_block(bits), 32 // bits
    assert block.shape == (8, 8, BLOCK_BITS // bits)
    for thread in range(32):
        g, c = thread // 4, thread % 4
        for layout in (block.a, block.b):
            for i in range(held):
                row, k = layout(thread, i) % 8, layout(thread, i) // 8
                assert (row, k * bits) == (g, 32 * c + i * bits)
        assert [divmod(block.c(thread, i), 8)[::-1] for i in (0, 1)] == [(g, 2 * c), (g, 2 * c + 1)]


def blocks_of(bits: int, m: int, n: int, k: int):
    return make_tiled_mma(mma_block(bits), (1, 1, 1), (m, n, k))


@pytest.mark.parametrize("name", WARP_ATOMS)
def test_atoms_are_compositions_of_blocks(name: str) -> None:
    """Fragments: (value of a register, block along M or N, block along K), in this order."""
    atom = mma_atom(name)
    block = mma_block(atom.a_bits)
    assert atom.a_types == TYPES[atom.a_bits] or set(atom.a_types) < set(TYPES[atom.a_bits])
    for operand, (x, y) in {"A": (0, 2), "B": (1, 2), "C": (0, 1)}.items():
        layout, extents, _ = atom.operand(operand)
        cut = zipped_divide(Layout(extents), (block.shape[x], block.shape[y]))
        threads, values = composition(cut[0], block.operand(operand)[0])
        composed = concatenate(threads, concatenate(values, cut[1]))
        assert composed.indices() == layout.indices()
        # The same by tiled mma.
        tiled = blocks_of(atom.a_bits, *atom.shape)
        for t in range(32):
            part = getattr(tiled.get_slice(t), f"partition_{operand}")(identity_tensor(extents))
            assert part.indices() == [layout(t, i) for i in range(layout[1].size)]


@pytest.mark.parametrize(("bits", "m", "n", "k"), SHAPES)
def test_all_shapes_and_types_are(bits: int, m: int, n: int, k: int) -> None:
    """Against the rows and columns by which the PTX rules execute each shape."""
    tiled = blocks_of(bits, m, n, k)
    b_k, b_n = fragments.fragment_b(bits, k)
    want = {
        "A": (fragments.fragment_a(bits, m, k), (m, k)),
        "B": ((b_n, b_k), (n, k)),
        "C": (fragments.fragment_c(m), (m, n)),
    }
    for operand, ((rows, columns), extents) in want.items():
        for t in range(32):
            part = getattr(tiled.get_slice(t), f"partition_{operand}")(identity_tensor(extents))
            assert part.indices() == list(rows[:, t] + extents[0] * columns[:, t])


def test_every_type_of_mma_sync_is_covered() -> None:
    assert {bits for bits, *_ in SHAPES} | {64} == set(_SHAPES) == {*TYPES, 64}
    ones = {(bits, m, n, k) for bits, m, n, k in SHAPES if m == 8}
    assert ones == {(8, 8, 8, 16), (4, 8, 8, 32), (1, 8, 8, 128)}  # one block each


@pytest.mark.parametrize("name", WARP_ATOMS)
def test_instructions_are_the_products_of_their_blocks(name: str) -> None:
    """The blocks multiply the registers of the whole instruction as they are."""
    atom = mma_atom(name)
    whole, blocks = make_tiled_mma(atom), blocks_of(atom.a_bits, *atom.shape)
    numbers = np.random.default_rng(len(name))

    def registers(mma, operand: str, values: np.ndarray):
        extents = mma.tile_of(operand)
        shape = getattr(mma.get_slice(0), f"partition_{operand}")(identity_tensor(extents)).shape
        return [make_tensor(mine.copy(), Layout(shape)) for mine in values]

    given = [
        numbers.integers(-9, 10, (32, atom.operand(x)[0][1].size)).astype(np.int32) for x in "ABC"
    ]
    results = []
    for mma in (whole, blocks):
        a, b, c = (registers(mma, x, values) for x, values in zip("ABC", given))
        gemm(a, b, c, mma)
        results.append([mine.engine.tolist() for mine in c])
    assert results[0] == results[1]


def test_what_is_not_composed_of_blocks() -> None:
    """m8n8k4 of f16: eight threads, 64 bits of a row each. f64: two registers to an element."""
    for name in (n for n in MMA_ATOMS if "m8n8k4" in n):
        atom = mma_atom(name)
        assert atom.threads.size == 8
        assert atom.a[1].size * atom.a_bits == 64 and atom.shape[2] * atom.a_bits == 64 < BLOCK_BITS
    with pytest.raises(LayoutError, match="which share 32-bit registers, got 64"):
        mma_block(64)


COUNTED = {
    "m8n8k4, f32 sums": ("mma.m8n8k4.f32.tn", "f32", (2, 2, 1)),
    "m16n8k8, f32 sums": ("mma.m16n8k8.f16", "f32", (1, 1, 1)),
    "m16n8k16, f32 sums": ("mma.m16n8k16.f16", "f32", (1, 1, 1)),
    "m8n8k4, f16 sums": ("mma.m8n8k4.f16.tn", "f16", (2, 2, 1)),
    "m16n8k8, f16 sums": ("mma.m16n8k8.f16", "f16", (1, 1, 1)),
    "m16n8k16, f16 sums": ("mma.m16n8k16.f16", "f16", (1, 1, 1)),
}


def test_the_table_of_the_page() -> None:
    """16 x 16 x 16 of f16: 80 register accesses of a thread fall to 28 from m8n8k4 to m16n8k16."""
    rows = re.findall(r"^\| `(m\d+n8k\d+)`, (f\d+ sums) \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    printed = {f"{shape}, {sums}": [int(x) for x in row.split("|")] for shape, sums, row in rows}
    counted = {}
    for key, (name, sums, placed) in COUNTED.items():
        atom = mma_atom(name)
        atom = atom if atom.c_types == (sums,) else atom.with_accumulator(sums)
        found = mma_counts(make_tiled_mma(atom, placed), 16, 16, 16)
        counted[key] = [found.instructions, found.a, found.b, found.c, found.d, found.registers]
    assert printed == counted
    assert [counted[f"{shape}, f32 sums"][-1] for shape in ("m8n8k4", "m16n8k16")] == [80, 28]


@pytest.mark.parametrize("name", [name for name in MMA_ATOMS if "f32.tn" in name or "16n" in name])
def test_counts_by_enumeration(name: str) -> None:
    """Registers of thread 0 named by every instruction of a 32 x 32 x 32 product, one by one."""
    atom = mma_atom(name)
    mma = make_tiled_mma(atom, (2, 2, 1) if "m8n8k4" in name else (1, 1, 1))
    m, n, k = mma.tile_shape
    read = dict.fromkeys("ABCD", 0)
    instructions = 0
    for _ in np.ndindex(32 // m, 32 // n, 32 // k):
        instructions += 1
        for operand in "ABCD":
            values = range(atom.operand(operand)[0][1].size)
            read[operand] += len({atom.register(operand, i)[0] for i in values})
    found = mma_counts(mma, 32, 32, 32)
    assert [found.a, found.b, found.c, found.d] == list(read.values())
    assert found.instructions == instructions
    assert found.registers == sum(read.values())


def test_counts_refuse_parts() -> None:
    with pytest.raises(LayoutError, match="32 threads of a warp, got 8"):
        mma_counts(make_tiled_mma("mma.m8n8k4.f32.tn"), 16, 16, 16)
    with pytest.raises(LayoutError, match="K of a multiple of 16, got 24"):
        mma_counts(make_tiled_mma("mma.m16n8k16"), 16, 16, 24)
    assert mma_counts(make_tiled_mma("mma.m16n8k16"), 16, 16, 32).instructions == 4
