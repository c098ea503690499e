"""gemm for sm_90a where a tile is stored under the products of the next one: all is executed,
breaks are seen."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passes.emit.functions import ERFC
from tcir.passmanager.pipeline import Pass
from tcir.validation.functions import OWN

from .epilogue_text import TRUNCATE, Fused, gelu_of_sums
from .product_text import program
from .test_gemm_wgmma import TARGET, no_wait
from .test_matmul_warp_breaks import Break, erase

E4M3, E5M2 = "f8E4M3FN", "f8E5M2"
TILES = {"n_tile": 64, "stages": 2, "persistent": True, "ctas": 2}
"""Four tiles or more, two or more for each CTA."""
NARROW = {"n_tile": 32, "stages": 2, "persistent": True, "ctas": 1}
"""Of one part each, all for one CTA."""
BESIDE = Fused(
    """
    %wide = arith.extf %r : f16 to f32
    %x = arith.addf %s, %bias : f32
    %y = arith.addf %x, %wide : f32
    %t = arith.mulf %y, %scale : f32
"""
    + TRUNCATE,
    {"r": ("f16", "mn"), "bias": ("f32", "n"), "scale": ("f32", "m")},
    m=72,
    n=56,
    k=256,
)
"""A residual, a bias, a scale of each row."""
SCALED = Fused("%t = arith.mulf %s, %all : f32" + TRUNCATE, {"all": ("f32", "")}, m=72, n=56, k=192)
QUANTISED = Fused(
    """
    %wide = arith.extf %bias : bf16 to f32
    %t = arith.addf %s, %wide : f32
    %q = arith.truncf %t : f32 to f8E4M3FN
    linalg.yield %q : f8E4M3FN
""",
    {"bias": ("bf16", "n")},
    out=E4M3,
    m=136,
    n=112,
    k=384,
)
CASES = [
    (program(72, 112, 128, "f16", out=E4M3), {**NARROW, "n_tile": 64}),  # bytes
    pytest.param(BESIDE.linalg(), NARROW, id="all that an epilogue may read"),
    pytest.param(program(72, 56, 384, E4M3, "mk", "nk", out="bf16"), NARROW, id="partial sums"),
    (program(136, 120, 256, "f16", out="f16"), TILES),
    (program(136, 112, 256, "f16", out=E4M3), TILES),
    (replace(BESIDE, m=136, n=120, k=384).linalg(), TILES),
    (program(136, 120, 512, E4M3, "mk", "nk", out="bf16"), TILES),
    (SCALED.linalg(), NARROW),
    (QUANTISED.linalg(), TILES),
    (Fused(gelu_of_sums("erf") + TRUNCATE, m=136, n=120, k=256).linalg(), TILES),
    (program(136, 112, 256, "bf16", out=E5M2), TILES),
    (program(136, 72, 256, "f16", batch=2, out="f16"), TILES),
    (program(264, 520, 384, E4M3, "mk", "nk", out="bf16"), {"persistent": True, "ctas": 2,
                                                           "n_tile": 256}),
    (program(264, 512, 512, E5M2, "mk", "nk", out=E4M3), {"persistent": True, "ctas": 2,
                                                         "n_tile": 256, "stages": 2}),
    (program(264, 520, 512, E4M3, "mk", "nk", out="f16"), {"cluster": "2x1", "n_tile": 64,
                                                          "persistent": True, "ctas": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options"), CASES)
def test_every_pass_is_executed_and_holds(text: str, options: dict[str, Any]) -> None:
    kernel = tcir.compile(text, "gemm", target=TARGET, validate=True, orders=2, **options)
    kernel.report.check()
    assert "setmaxnreg" in kernel.ptx


@dataclass(frozen=True)
class Count(Pass):
    """Ops by name, in the order of passes."""

    name: ClassVar[str] = "count"
    found: list[Counter[str]] = field(default_factory=list)

    def run(self, module: Any) -> None:
        counter: Counter[str] = Counter()

        def visit(op: Any) -> Any:
            counter[op.name] += 1
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        self.found.append(counter)


def counted(text: str, after: str = "defer-stores", **options: Any) -> Counter[str]:
    """The ops behind a pass."""
    count = Count()
    pipeline = tcir.named_pipeline("gemm", **options).insert(count, after=after)
    tcir.compile(text, pipeline, target=TARGET)
    return count.found[0]


def test_what_an_epilogue_reads_is_fetched_where_k_has_steps_for_it() -> None:
    """What differs by element in a step behind the one that stores, the rest in the last one, with
    one more between them."""
    assert counted(BESIDE.linalg(), **NARROW)["tc.fetch_fragment"] == 3
    assert counted(replace(BESIDE, k=192).linalg(), **NARROW)["tc.fetch_fragment"] == 1
    ops = counted(replace(BESIDE, k=128).linalg(), **NARROW)
    assert (ops["tc.fetch_fragment"], ops["tc.fragment_part"]) == (0, 1)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (program(136, 120, 256, "f16", out="f16"), 2),
        (program(136, 112, 256, "f16", out=E4M3), 1),
        (program(136, 120, 256, "f16"), 0),  # f32 takes all registers
        (program(136, 100, 256, "f16", out="f16"), 0),  # no whole units of 16 bytes
        (program(136, 120, 128, "f16", out="f16"), 0),  # two steps
    ],
)
def test_what_is_deferred(text: str, parts: int) -> None:
    assert counted(text, **TILES)["tc.fragment_part"] == parts


def test_a_kernel_with_partial_sums_waits_ahead_where_its_ring_has_slots() -> None:
    """Waits of the producer, of the first step, of the second, and in the loop of the next one;
    without a second slot none is moved."""
    text = program(136, 120, 512, E4M3, "mk", "nk", out="bf16")
    ops = counted(text, after="wait-ahead", **TILES)
    assert (ops["tc.mbarrier_wait"], ops["tc.wgmma_product"]) == (1 + 3, 2)
    ops = counted(text, after="wait-ahead", **{**TILES, "stages": 1})
    assert (ops["tc.mbarrier_wait"], ops["tc.wgmma_product"]) == (1 + 2, 2)


def unconditional(op: Any) -> None:
    """The first tile stores what was held before there was one."""
    *ops, _ = op.regions[0].blocks[0]
    for each in ops:
        each.operation.move_before(op)
    op.erase()


def first_part(op: Any) -> None:
    """All parts are the first one."""
    op.attributes["first"] = ir.IntegerAttr.get(op.attributes["first"].type, 0)


def plus(operand: int, amount: int) -> Any:
    """An operand, so much further."""

    def change(op: Any) -> None:
        with ir.InsertionPoint(op), op.location:
            old = op.operands[operand]
            op.operands[operand] = arith.addi(old, arith.constant(old.type, amount))

    return change


def shares(*registers: int) -> Any:
    """Other shares of the registers of an SM."""

    def change(op: Any) -> None:
        op.attributes["registers"] = ir.DenseI64ArrayAttr.get(registers)

    return change


PRODUCT = program(136, 128, 256, "f16", out="f16")
PARTIAL = program(136, 128, 512, E4M3, "mk", "nk", out="bf16")
BREAKS = {
    "one part twice": (PRODUCT, "defer-stores", Break("tc.fragment_part", first_part)),
    "zeros stored before the first tile": (PRODUCT, "defer-stores", Break("scf.if", unconditional)),
    "parts stored 8 columns further": (
        PRODUCT, "defer-stores", Break("tc.store_fragment", plus(3, 8)),
    ),
    "what belongs to 8 rows further": (
        replace(BESIDE, m=128, n=64).linalg(), "defer-stores",
        Break("tc.fetch_fragment", plus(1, 8)),
    ),
    "partial sums added before the wait": (
        PARTIAL, "wait-ahead", Break("tc.wgmma_wait", no_wait),
    ),
    "more registers than an SM has": (
        PRODUCT, "defer-stores", Break("tc.warpgroup_registers", shares(240, 240, 40))
    ),
    "no wait for tiles": (PARTIAL, "wait-ahead", Break("tc.mbarrier_wait", erase)),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_seen_at_once(name: str) -> None:
    text, after, broken = BREAKS[name]
    options = NARROW if "fetch" in broken.op else TILES
    pipeline = tcir.named_pipeline("gemm", **options).insert(broken, after=after)
    kernel = tcir.compile(text, pipeline, target=TARGET, validate=True)
    failure = kernel.report.first_failure()
    assert failure is not None, str(kernel.report)
    assert failure.name == "break", str(failure)


def test_the_error_function_is_within_its_bound() -> None:
    """As it is computed: multiply-adds, and 2^x, in f32, which errs by 2^-22 (ex2.approx)."""
    from math import erf

    x = np.concatenate([np.linspace(0, 12, 40001), np.geomspace(12, 3e38, 500)]).astype("f4")
    total = np.full_like(x, ERFC[-1])
    with np.errstate(over="ignore"):
        for factor in reversed(ERFC[:-1]):
            total = (total.astype("f8") * x + np.float32(factor)).astype("f4")
        tail = np.exp2((total * x).astype("f8")).astype("f4")
    exact = np.array([erf(each) for each in x.astype(float)])
    error = np.abs((1 - tail) - exact).max()
    assert error + 2.0**-22 < OWN["math.erf"](np.zeros(1), np.zeros(1), np.zeros(1))
