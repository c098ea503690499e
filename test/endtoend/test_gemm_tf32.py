"""GEMM of f32, as tf32, with M or N innermost: read where it is, by swizzles of 32-byte atoms.

Four layouts with tails, at every level; and the ways in which map, descriptor and tile can miss
each other, each seen at the pass it is in.
"""

from __future__ import annotations

from typing import Any

import pytest

import tcir
from tcir._mlir import arith, ir

from .breaking import Break, change_text, pick, set_attribute, walk
from .gemm_cases import LAYOUTS, Dense
from .test_gemm import check, run
from .test_halo_assumptions import assume

QUICK = Dense(132, 40, 44, "f32", "km", "kn", options="n-tile=48")
"""Both MN-major: two tiles of rows, the second of 4; a last k step of 12; N in one and a half
columns of the swizzle."""
TAILS = [
    *(
        Dense(m, n, k, "f32", a, b)
        for m, n, k in ((4, 4, 4), (124, 12, 28), (128, 16, 32), (132, 20, 36), (260, 132, 8))
        for a, b in LAYOUTS
    ),
    *(Dense(136, 72, 33, "f32", "km", "kn", options=f"n-tile={n}") for n in (16, 32, 64)),
    Dense(40, 264, 100, "f32", "mk", "kn", options="n-tile=256 stages=1"),
    Dense(40, 264, 100, "f32", "km", "kn", options="n-tile=96 stages=3 swap=never"),
]
"""Rows of whole 16 bytes; an odd K is no row where both are MN-major."""
FORMS = [
    Dense(260, 200, 44, "f32", "km", "kn", options="cluster=2x2"),
    Dense(300, 72, 72, "f32", "km", "kn", options="cta-group=2 n-tile=96"),
    Dense(140, 136, 40, "f32", "mk", "kn", options="cta-group=2 n-tile=32"),
    Dense(140, 40, 176, "f32", "km", "kn", options="n-tile=16 persistent=true ctas=2"),
    Dense(600, 72, 40, "f32", "km", "kn", options="cta-group=2 n-tile=32 persistent=true ctas=4"),
    Dense(32, 264, 40, "f32", "km", "kn", options="swap=always"),
    Dense(140, 40, 72, "f32", "km", "nk", batch=2),
    Dense(140, 40, 72, "f32", "km", "kn", out="bf16", options="store=tma"),
]
UNALIGNED = Dense(130, 40, 36, "f32", "km", "kn")
"""Rows of 130 f32 are 520 bytes."""


@pytest.mark.parametrize("case", [QUICK, *TAILS, *FORMS], ids=str)
def test_every_level(case: Dense, orders: int) -> None:
    """Equal on integers, and with numpy; in one kernel."""
    run(case, orders)
    assert len(tcir.compile(case.text, case.pipeline).launches.launches) == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("layout", LAYOUTS, ids="-".join)
def test_floats_are_within_the_bound(layout: tuple[str, str], seed: int) -> None:
    case = Dense(132, 72, 100, "f32", *layout)
    report = tcir.validate(case.text, case.pipeline, inputs="random", orders=1, seed=seed)
    assert report.ok, str(report)


def test_rows_of_no_multiple_of_16_bytes_are_repacked() -> None:
    kernel = check(UNALIGNED.text, UNALIGNED.pipeline)
    assert len(kernel.launches.launches) == 2  # A alone


@pytest.mark.parametrize("answer", ["4", "8"])
def test_rows_that_a_stride_steps_over(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the dense kind is 8 rows of K, one behind the other: right under both answers."""
    assume(monkeypatch, atom_32b_rows=answer)
    check(QUICK.text, QUICK.pipeline, orders=1)


# --- breaks --------------------------------------------------------------------------------------

TILE, TO_NVVM = "tile-gemm", "convert-tc-to-nvvm"
MAP, OLD, NEW = "tc.make_tensor_map", '"128B_ATOM_32B"', '"128B"'
SWIZZLE, LBO, SBO = 61, 16, 32
"""First bits of fields of a matrix descriptor."""
OFFSET_BITS = (1 << 14) - 1
B_DESCRIPTOR, A_DESCRIPTOR = 0, 1
"""Constants of 64 bits with swizzle code 1, in program order."""


def descriptor(change: Any, index: int) -> Any:
    """``change(bits)`` in place of the constant part of a matrix descriptor."""

    def edit(module: Any) -> None:
        found = [
            op
            for op in walk(module, "arith.constant")
            if str(op.results[0].type) == "i64"
            and ir.IntegerAttr(op.attributes["value"]).value >> SWIZZLE == 1
        ]
        op = found[index]
        old = ir.IntegerAttr(op.attributes["value"])
        op.attributes["value"] = ir.IntegerAttr.get(old.type, change(old.value))
        assert len(found) == 2 and change(old.value) != old.value

    return edit


def _atoms_of_16(bits: int) -> int:
    return bits + (1 << SWIZZLE)


def _no_swizzle(bits: int) -> int:
    return bits - (1 << SWIZZLE)


def _exchanged(bits: int) -> int:
    lbo, sbo = bits >> LBO & OFFSET_BITS, bits >> SBO & OFFSET_BITS
    return bits + ((sbo - lbo) << LBO) + ((lbo - sbo) << SBO)


def _eight_rows(bits: int) -> int:
    """SBO as of the other swizzles: 1024 bytes."""
    return bits + (512 >> 4 << SBO)


def _next_row(bits: int) -> int:
    return bits + (128 >> 4 << LBO)


def _k_major(module: Any) -> None:
    """Bit 15 of the instruction descriptor: A is not transposed."""
    value = pick(module, "nvvm.tcgen05.mma").operands[3].owner
    old = ir.IntegerAttr(value.attributes["value"])
    value.attributes["value"] = ir.IntegerAttr.get(old.type, old.value ^ 1 << 15)


def _slices_of_four(module: Any) -> None:
    """The second step begins 4 rows of K behind the first, not 8."""
    mma = list(walk(module, "nvvm.tcgen05.mma"))[1]
    add = mma.operands[1].owner
    with ir.InsertionPoint(add), add.location:
        add.operands[1] = arith.constant(ir.IntegerType.get_signless(64), 512 >> 4)


REFUSED, DIFFERENT = ("refused",), ("difference",)
BEYOND = ("hazard: race",)
"""Where the tile ends, the next one begins, which a later load fills."""
BREAKS = [
    Break("atoms of 16 bytes in the map of A", TILE, set_attribute(MAP, "swizzle", NEW), REFUSED),
    Break("atoms of 16 bytes in the map of B", TILE, set_attribute(MAP, "swizzle", NEW, 1),
          REFUSED),
    Break("atoms of 16 bytes in the type", TILE, change_text(f'"MN", {OLD}', f'"MN", {NEW}'),
          REFUSED),
    Break("a map of A with atoms of 16 bytes", TO_NVVM,
          change_text(f"swizzle = {OLD}", f"swizzle = {NEW}"), DIFFERENT),
    Break("a descriptor of A with atoms of 16 bytes", TO_NVVM,
          descriptor(_atoms_of_16, A_DESCRIPTOR), ("illegal",)),
    Break("a descriptor of B with atoms of 16 bytes", TO_NVVM,
          descriptor(_atoms_of_16, B_DESCRIPTOR), ("illegal",)),
    Break("a descriptor of B without a swizzle", TO_NVVM,
          descriptor(_no_swizzle, B_DESCRIPTOR), ("illegal",)),
    Break("strides of A exchanged", TO_NVVM, descriptor(_exchanged, A_DESCRIPTOR), DIFFERENT),
    Break("strides of B exchanged", TO_NVVM, descriptor(_exchanged, B_DESCRIPTOR), DIFFERENT),
    Break("a stride of 8 rows", TO_NVVM, descriptor(_eight_rows, A_DESCRIPTOR), BEYOND),
    Break("columns one row off", TO_NVVM, descriptor(_next_row, A_DESCRIPTOR), BEYOND),
    Break("A as K-major", TO_NVVM, _k_major, ("illegal",)),
    Break("slices of four rows", TO_NVVM, _slices_of_four, DIFFERENT),
]  # fmt: skip


@pytest.mark.parametrize(
    "each",
    [pytest.param(b, id=b.what) for b in BREAKS],
)
def test_break(each: Break) -> None:
    each.check(QUICK.text, tcir.named_pipeline("gemm", n_tile=48), orders=2)
