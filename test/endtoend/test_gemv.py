"""Block-scaled products on tensor cores: every format and schedule at every level, to the bit.

Every level runs under two completion orders; `make test-all` runs all cases, the PTX under
three or `TCIR_ORDERS`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
import pytest

import tcir

from . import block_scaled_exact as exact
from .block_scaled_oracle import DTYPES, inputs_of, product
from .block_scaled_text import F4, F6A, F6B, F8A, F8B, UE4M3, UE8M0, BlockScaled
from .gemv_full import FULL, Full, check

FORMATS = (
    BlockScaled(),  # NVFP4
    BlockScaled(scale=UE8M0),
    BlockScaled(scale=UE8M0, block=32),
    *(
        BlockScaled(a=a, b=b, scale=UE8M0, block=32)
        for a, b in (
            (F8A, F8A), (F8B, F8A), (F6A, F6A), (F6B, F8B), (F6A, F6B), (F4, F8A), (F8B, F4),
            (F4, F6B),
        )
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """Sizes, and options of the pipeline."""

    options: str = ""
    m: int = 128
    k: int = 512
    n: int | None = None
    batch: int | None = None
    out: str = "f32"
    alpha: str = "no"

    def of(self, format_: BlockScaled) -> BlockScaled:
        """The shape in a format."""
        # What TMA pads comes in 128 elements.
        packed = format_.a == F4 and format_.b == F4
        k = self.k if packed or self.k % 128 == 0 else 2 * self.k
        return replace(
            format_, m=self.m, k=k, n=self.n, batch=self.batch, out=self.out, alpha=self.alpha
        )

    @property
    def pipeline(self) -> str:
        """Text of the pipeline."""
        return f"gemv-padded-n{{{self.options}}}"


SHAPES = (
    Shape(m=1, k=128),
    Shape(m=130, k=384, out="f16", alpha="after"),
    Shape("schedule=split-k splits=2", m=200, k=1024),
    Shape("schedule=stream-k", m=300, k=320, out="bf16"),
    Shape(m=100, batch=2, n=3, out="bf16"),
    Shape("pad_n=8", m=129, n=8),
    Shape("schedule=stream-k", batch=3, alpha="in"),
    Shape("stages=1", m=256, k=640),
)
CASES = [
    pytest.param(format_, shape, id=f"{shape.of(format_)}-{shape.options}")
    for format_ in FORMATS
    for shape in SHAPES
]
assert len(CASES) >= 80


@pytest.mark.parametrize(("format_", "shape"), CASES)
def test_every_level(format_: BlockScaled, shape: Shape, orders: int) -> None:
    case = shape.of(format_)
    inputs = inputs_of(case, seed=5, largest=2)
    kernel = tcir.compile(case.linalg(), pipeline=shape.pipeline, validate=True, orders=2, seed=3)
    report = kernel.report
    assert report.ok, str(report)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert "llvm-to-ptx" in {line.name for line in report.passes}
    assert not [f for line in report.passes for f in line.findings]
    want = product(case, **inputs)
    for order in (None, *range(1, orders)):
        out = np.zeros_like(want)
        outcome = kernel(*inputs.values(), out, order_seed=order)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (order, str(outcome))


def any_codes(case: BlockScaled, seed: int) -> dict[str, np.ndarray]:
    """Elements of all finite codes; scales in a range that keeps sums normal."""
    rng = np.random.default_rng(seed)
    found = inputs_of(case)
    for name in ("a", "b"):
        of = getattr(case, name)
        bits = int(of[1])
        codes = np.arange(1 << bits, dtype=np.uint8).view(DTYPES[of])
        codes = codes[np.isfinite(codes.astype(np.float64))]
        found[name] = codes[rng.integers(0, len(codes), found[name].shape)]
        low, high = (0x20, 0x60) if case.scale == UE4M3 else (117, 137)
        scales = rng.integers(low, high, found[f"s{name}"].shape).astype(np.uint8)
        found[f"s{name}"] = scales.view(DTYPES[case.scale])
    return found


@pytest.mark.parametrize(
    ("format_", "splits"),
    [
        pytest.param(format_, splits, id=f"{format_}-{splits}")
        for format_ in FORMATS
        for splits in (1, 3)
    ],
)
def test_arithmetic(format_: BlockScaled, splits: int) -> None:
    """All codes and wide scales against the exact model: sums that are cut."""
    case = replace(format_, m=70, k=1024, alpha="no")
    inputs = any_codes(case, 11)
    pipeline = f"gemv-padded-n{{schedule=split-k splits={splits}}}"
    out = np.zeros(case.m, np.float32)
    tcir.compile(case.linalg(), pipeline=pipeline)(*inputs.values(), out, hazards="off")
    a, sa, b, sb = (inputs[n].astype(np.float64)[None] for n in ("a", "sa", "b", "sb"))
    of = exact.Formats(case.a, case.b, case.scale, case.block)
    stage = 256 if of.packed else 128
    want = exact.gemv(a, sa, b[:, None], sb[:, None], of, ctas=splits, stage=stage)
    assert out.tobytes() == want.tobytes()
    rounded = product(case, **inputs)
    assert (out != rounded).any(), "the sums should be cut somewhere"


def test_two_f4_formats_differ_in_kind() -> None:
    kinds = {
        (UE4M3, 16): "kind::mxf4nvf4.block_scale.block16",
        (UE8M0, 16): "kind::mxf4nvf4.block_scale.block16",
        (UE8M0, 32): "kind::mxf4.block_scale",
    }
    for (scale, block), name in kinds.items():
        case = BlockScaled(m=128, k=512, scale=scale, block=block)
        assert name in tcir.compile(case.linalg(), pipeline="gemv-padded-n").ptx


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (
            BlockScaled(m=8, k=96, blocked="a1"),
            "K to be a multiple of 64, got 96: .* pass row-major scales",
        ),
        (
            BlockScaled(m=8, k=64, a=F6A, b=F6A, scale=UE8M0, block=32, blocked="a1b1"),
            "K to be a multiple of 128 with e2m3 in kind mxf8f6f4, got 64: .* pass row-major",
        ),
        (
            BlockScaled(m=8, k=16, blocked="a1"),
            "rows of A to be multiples of 16 bytes, got 8 .* pass row-major scales",
        ),
        (BlockScaled(m=8, k=256, n=17), "at most pad-n = 16 columns of B, got 17; take pad-n=32"),
        (
            BlockScaled(m=8, k=256, n=129),
            "at most 128 columns of B, got 129 .* or take .* gemv-simt",
        ),
    ],
    ids=str,
)
def test_refused(case: BlockScaled, says: str) -> None:
    with pytest.raises(tcir.PassError, match=says):
        tcir.compile(case.linalg(), pipeline="gemv-padded-n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("pad_n=24", "expected pad-n of 8 or a multiple of 16"),
        ("schedule=fast", "expected schedule to be one of auto"),
        ("splits=2", "schedule=auto"),
        ("kind=mxf4", "expected kind to be one of mxf4nvf4, got mxf4"),
        ("schedule=split-k splits=9", r"splits must be in \[1, 1\]"),
    ],
)
def test_refused_options(options: str, says: str) -> None:
    case = BlockScaled(m=8, k=256)
    with pytest.raises(tcir.PassError, match=says):
        tcir.compile(case.linalg(), pipeline=f"gemv-padded-n{{{options}}}")


def test_a_nan_scale_reaches_its_row_only() -> None:
    case = BlockScaled(m=130, k=256)
    inputs = inputs_of(case)
    inputs["sa"].view(np.uint8)[129, 3] = 0x7F
    out = np.zeros(130, np.float32)
    tcir.compile(case.linalg(), pipeline="gemv-padded-n")(*inputs.values(), out)
    assert np.isnan(out[129])
    assert np.isfinite(out[:129]).all()


def test_the_sign_bit_of_ue4m3_is_ignored() -> None:
    case = BlockScaled(m=3, k=64)
    inputs = inputs_of(case)
    want = product(case, **inputs)
    inputs["sa"] = (inputs["sa"].view(np.uint8) | 0x80).view(ml_dtypes.float8_e4m3fn)
    out = np.zeros(3, np.float32)
    tcir.compile(case.linalg(), pipeline="gemv-padded-n")(*inputs.values(), out)
    assert out.tobytes() == want.tobytes()


def test_a_part_of_a_real_size() -> None:
    """A tile of the largest problem, all of its K, against the exact reference."""
    check(Full(100, 16384, 1, ctas=1, stage=256), "raise")


@pytest.mark.parametrize("hazards", ["off", "raise"])
@pytest.mark.parametrize("full", FULL, ids=str)
def test_full_size(full: Full, hazards: str) -> None:
    seconds = check(full, hazards)
    print(f"\n{full}: {seconds:.0f} s with hazards={hazards}", end="")
