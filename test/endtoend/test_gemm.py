"""Pipeline gemm: types, layouts, tails and tiles at every level, to the bit.

`make test` runs some of `QUICK` and `SCALED_QUICK` under two completion orders, `make test-all` all
cases.
"""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np
import pytest

import tcir
from tcir._mlir import arith
from tcir.program.inputs import make_inputs, poison

from .block_scaled_oracle import as_passed, inputs_of
from .block_scaled_oracle import product as scaled_product
from .block_scaled_text import BlockScaled
from .breaking import Edit, change_operand, run_broken, set_attribute
from .gemm_cases import DENSE, MAJORS, QUICK, Dense
from .gemm_scaled_cases import PAIRS, SCALED, TILES, Scaled
from .gemm_scaled_cases import QUICK as SCALED_QUICK


def check(text: str, pipeline: str, orders: int = 2) -> tcir.Kernel:
    """Compiles with every level executed on integers: equal, and nothing found."""
    kernel = tcir.compile(text, pipeline, validate=True, orders=orders, seed=3)
    report = kernel.report
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert {"tensor", "tile", "thread", "ptx"} <= {line.level for line in report.passes}
    assert not [finding for line in report.passes for finding in line.findings]
    return kernel


def run(case: Dense, orders: int) -> None:
    """Every level, and the PTX beside numpy."""
    kernel = check(case.text, case.pipeline)
    a, b = make_inputs(kernel.signature.inputs, 7, "integers")
    want = case.product(a, b)
    for order in (None, *range(1, orders)):
        (out,) = (poison(spec) for spec in kernel.signature.outputs)
        outcome = kernel(a, b, out, order_seed=order)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (order, str(outcome))


@pytest.mark.parametrize("case", QUICK, ids=str)
def test_quick(case: Dense, orders: int) -> None:
    run(case, orders)


@pytest.mark.parametrize("case", DENSE, ids=str)
def test_every_level(case: Dense, orders: int) -> None:
    run(case, orders)


@pytest.mark.parametrize("case", [c for c in MAJORS if c.element != "i8"], ids=str)
def test_floats_are_within_the_bound(case: Dense) -> None:
    report = tcir.validate(case.text, case.pipeline, inputs="random", orders=1, seed=4)
    assert report.ok, str(report)


def run_scaled(scaled: Scaled, orders: int) -> None:
    """The same of a block-scaled product."""
    case = scaled.case
    kernel = check(case.linalg(), scaled.pipeline)
    inputs = inputs_of(case, seed=5, largest=2)
    want = scaled_product(case, **inputs)
    passed = as_passed(case, inputs)
    for order in (None, *range(1, orders)):
        out = np.zeros_like(want)
        outcome = kernel(*passed.values(), out, order_seed=order)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (order, str(outcome))


@pytest.mark.parametrize("case", SCALED_QUICK, ids=str)
def test_scaled_quick(case: Scaled, orders: int) -> None:
    run_scaled(case, orders)


@pytest.mark.parametrize("case", [*SCALED, *TILES, *PAIRS], ids=str)
def test_scaled_at_every_level(case: Scaled, orders: int) -> None:
    run_scaled(case, orders)


DOCUMENT_TILES = [
    (size, options)  # 128x128x256, 128x192x256, 256x128x256
    for options in ("n-tile=128", "n-tile=192", "cta-group=2 n-tile=128")
    for size in ((128, 7168, 16384), (128, 4096, 7168), (128, 7168, 2048), (4096, 4096, 4096))
]


@pytest.mark.parametrize(("size", "options"), DOCUMENT_TILES, ids=str)
def test_nvfp4_compiles_without_spills(size: tuple[int, int, int], options: str) -> None:
    from tcir import codegen

    m, n, k = size
    text = BlockScaled(m=m, n=n, k=k, out="bf16").linalg()
    cubin = codegen.assemble(tcir.compile(text, f"gemm{{{options}}}").ptx, target="sm_100a")
    assert cubin.spill_bytes == 0


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("size", "options", "hazards"),
    [((128, 7168, 2048), "n-tile=192", "raise"), ((128, 4096, 7168), "n-tile=128", "off")],
    ids=["128x192x256-38-tiles", "128x128x256-32-tiles"],
)
def test_nvfp4_in_full(
    size: tuple[int, int, int], options: str, hazards: Literal["raise", "off"]
) -> None:
    """Every tile of two of them from PTX, to the bit with numpy and ml_dtypes.

    The first with its hazards looked for, the larger without: a minute each.
    """
    m, n, k = size
    case = BlockScaled(m=m, n=n, k=k, out="bf16", alpha="after", blocked="a1b1")
    kernel = tcir.compile(case.linalg(), f"gemm{{{options}}}")
    inputs = inputs_of(case, seed=5)
    want = scaled_product(case, **inputs)
    out = np.zeros_like(want)
    before = time.perf_counter()
    outcome = kernel(*as_passed(case, inputs).values(), out, hazards=hazards)
    print(f"\n{case}: {time.perf_counter() - before:.0f} s with hazards={hazards}", end="")
    assert out.tobytes() == want.tobytes() and not outcome.findings


def _unshifted(old: Any) -> Any:
    """A column that the place of the tile in its block does not move."""
    return old.owner.operands[0]


def _next_block(old: Any) -> Any:
    return arith.addi(old, arith.constant(old.type, 1))


BREAKS = {
    "scales of the neighbour tile": change_operand("tc.cp_scales", 2, _unshifted, index=4),
    "stale set of B": set_attribute("tc.mma_block_scale", "sfb_column", "4 : i64", 1),
    "next block of B": change_operand("tc.tma_load", 3, _next_block, index=3),
    "wrong slice of B": set_attribute("tc.mma_block_scale", "b_slice", "0 : i64", 1),
}


@pytest.mark.parametrize("edit", BREAKS.values(), ids=BREAKS.keys())
def test_break(edit: Edit) -> None:
    """192 columns: B's scales begin inside a block; what misses them is laid to the tiling."""
    program = BlockScaled(m=20, n=300, k=512).linalg()
    pipeline = tcir.named_pipeline("gemm", n_tile=192)
    caught = run_broken(program, pipeline, "tile-gemm", edit, orders=1)
    assert (caught.at, caught.by) == ("tile-gemm", "difference"), caught.text
