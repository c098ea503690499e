"""Pipeline gemv-simt from linalg to PTX: equal at every level, right against numpy, breaks seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.passes.emit import simt
from tcir.passes.simt import block_scaled as convert
from tcir.passes.simt import convert_to_simt, scales
from tcir.program.memory_image import to_memory

from .block_scaled_oracle import DTYPES, inputs_of, product
from .block_scaled_text import F4, F6A, F6B, F8A, F8B, UE8M0, BlockScaled

MX: dict[str, Any] = {"scale": UE8M0, "block": 32}
QUICK = [
    (BlockScaled(m=3, k=1056, out="f16", alpha="after"), {"rows": 2}),  # two chunks for a lane
    (BlockScaled(m=3, k=48), {"rows": 1, "reorder": True}),
]
SLOW = (
    [(BlockScaled(m=2, k=64, n=2, a=F8A, b=F6A, split=True, **MX), {"rows": 1, "warps": 1})]
    + [
        (BlockScaled(m=m, k=k, batch=batch, n=n, out=out, alpha=alpha), {})
        for m, k, batch, n, out, alpha in (
            (1, 16, None, None, "f32", "no"),
            (33, 128, None, 1, "f16", "in"),
            (17, 2048, None, None, "bf16", "after"),
            (12, 96, 3, None, "f32", "after"),
            (9, 112, 2, 8, "f16", "no"),
            (64, 256, None, 17, "f32", "no"),
            (5, 48, 2, 2, "bf16", "no"),
        )
    ]
    + [
        (BlockScaled(m=7, k=96, n=n, a=a, b=b, **MX), {"reorder": reorder})
        for a, b, n, reorder in (
            (F4, F4, None, True),
            (F4, F6B, 2, False),
            (F6A, F8B, None, False),
            (F8B, F8A, 3, True),
            (F6B, F6A, None, True),
            (F8A, F6A, None, False),
        )
    ]
)


def _held(case: BlockScaled, options: dict[str, Any], **more: Any) -> tcir.Kernel:
    kernel = tcir.compile(case.linalg(), "gemv-simt", validate=True, **options, **more)
    assert {line.verdict for line in kernel.report.passes} <= {"reference", "equal"}, str(
        kernel.report
    )
    assert not any(line.findings for line in kernel.report.passes)
    return kernel


@pytest.mark.parametrize(("case", "options"), QUICK, ids=str)
def test_equal_at_every_level(case: BlockScaled, options: dict[str, Any]) -> None:
    _held(case, options, target="sm_90")


@pytest.mark.parametrize(("case", "options"), SLOW, ids=str)
@pytest.mark.parametrize("target", ["sm_90", "sm_100a"])
def test_more_shapes(case: BlockScaled, options: dict[str, Any], target: str) -> None:
    _held(case, options, target=target, orders=3)


def test_random_inputs_within_bound() -> None:
    case = BlockScaled(m=2, k=512, alpha="in")
    report = tcir.compile(case.linalg(), "gemv-simt", validate=True, inputs="random", rows=1).report
    assert {line.verdict for line in report.passes} <= {"reference", "equal", "within bound"}


def _run(kernel: tcir.Kernel, arrays: list[np.ndarray]) -> np.ndarray:
    spec = kernel.signature.outputs[0]
    out = np.zeros(spec.shape, spec.dtype)
    kernel(*arrays, out)
    return out


def test_against_numpy_and_packed_bytes() -> None:
    """Arrays of elements and their packed bytes are the same inputs."""
    case = BlockScaled(m=6, k=96, alpha="after", out="f16")
    arrays = inputs_of(case, seed=2)
    kernel = tcir.compile(case.op(), "gemv-simt")
    want = product(case, *arrays.values())
    given = list(arrays.values())
    packed = [to_memory(a).view(np.uint8) if a.dtype == DTYPES[F4] else a for a in given]
    assert packed[0].shape == (6, 48)
    low, high = packed[0] & 15, packed[0] >> 4  # the even k in the low half
    assert (np.stack([low, high], -1).reshape(6, 96) == given[0].view(np.uint8)).all()
    for inputs in (given, packed):
        assert (_run(kernel, inputs).view(np.uint16) == want.view(np.uint16)).all()


def test_every_code_of_every_element_type() -> None:
    """All codes of A times 1: what the decoders make of each, NaN and infinities included."""
    for element, codes in ((F4, 16), (F6A, 64), (F6B, 64), (F8A, 256), (F8B, 256)):
        rows = codes // 4  # each quarter of the codes in a batch, at a place, of its own
        case = BlockScaled(batch=4, m=rows, k=32, a=element, b=F8A, **MX)
        kernel = tcir.compile(case.op(), "gemv-simt", rows=2)
        place = (1, 5, 18, 31)
        a, b = np.zeros((4, rows, 32), np.uint8), np.zeros((4, 32), DTYPES[F8A])
        for n, k in enumerate(place):
            a[n, :, k] = np.arange(rows) + n * rows
            b[n, k] = 1
        elements = a.view(DTYPES[element])
        ones = np.ones((4, rows, 1), DTYPES[UE8M0])
        got = _run(kernel, [elements, ones, b, ones[:, 0]])
        want = np.stack([elements[n, :, k] for n, k in enumerate(place)]).astype(np.float32)
        np.testing.assert_array_equal(got, want)


def test_every_scale() -> None:
    """Scales of A, all codes: ue4m3 without its sign, ue8m0 with 2^-127 and NaN."""
    for scale, block in (("f8E4M3FN", 16), (UE8M0, 32)):
        case = BlockScaled(m=256, k=32, scale=scale, block=block)
        kernel = tcir.compile(case.op(), "gemv-simt", rows=2)
        a, b = np.zeros((256, 32), DTYPES[F4]), np.zeros(32, DTYPES[F4])
        a[:, 3] = b[3] = 1
        codes = np.zeros((256, 32 // block), np.uint8)
        codes[:, 0] = np.arange(256)
        ones = np.ones(32 // block, DTYPES[scale])
        want = codes[:, 0] & (0x7F if block == 16 else 0xFF)
        got = _run(kernel, [a, codes.view(DTYPES[scale]), b, ones])
        np.testing.assert_array_equal(got, want.view(DTYPES[scale]).astype(np.float32))


def test_nan_scale_reaches_its_row_only() -> None:
    case = BlockScaled(m=4, k=64)
    arrays = inputs_of(case, seed=1)
    arrays["sa"][2, 1] = np.nan
    got = _run(tcir.compile(case.op(), "gemv-simt"), list(arrays.values()))
    assert np.isnan(got).tolist() == [False, False, True, False]
    arrays["a"][2] = 0  # a NaN scale of zeros is NaN, too
    assert np.isnan(_run(tcir.compile(case.op(), "gemv-simt"), list(arrays.values()))[2])


def _swapped(word: Any) -> Any:
    """Nibbles in the wrong order."""
    odd, even = simt.both_bits(word, 0x0F0F0F0F), simt.both_bits(word, -0x0F0F0F10)
    return simt.either_bits(simt.left(odd, 4), simt.right(even, 4))


BREAKS = {
    "nibble order of A": ("convert-to-simt{rows=4}", lambda patch: patch(
        convert._Side, "load", _load_a_swapped)),
    "the scale of the next block": ("convert-to-simt{rows=4}", lambda patch: patch(
        convert._Side, "_load_scales", _next_scales)),
    "rows of a block of scales": ("convert-to-simt", lambda patch: patch(
        scales, "BLOCK_ROWS", 64)),
    "a padding that is not written": ("convert-to-simt", lambda patch: patch(
        convert_to_simt, "RULES", (_no_store,))),
}  # fmt: skip
_LOAD, _SCALES = convert._Side.load, convert._Side._load_scales


def _load_a_swapped(self: Any, row: Any, chunk: Any, count: int) -> Any:
    *words, codes = _LOAD(self, row, chunk, count)
    return [*(_swapped(word) if self.rows > 1 else word for word in words), codes]


def _next_scales(self: Any, scales: Any, chunk: Any, count: int) -> Any:
    codes = _SCALES(self, scales, chunk, count)
    swapped = simt.either_bits(simt.right(codes, 8), simt.left(simt.both_bits(codes, 255), 8))
    return swapped if self.rows > 1 else codes


def _no_store(module: Any, function: Any) -> bool:
    converted = scales.convert(module, function)
    kernels = [o for o in module.body.operations if o.operation.name == "gpu.module"]
    for kernel in kernels[0].regions[0].blocks[0].operations:
        kernel.attributes["tc.grid"] = type(kernel.attributes["tc.grid"]).get([1, 1, 1])
    return converted


@pytest.mark.parametrize("what", BREAKS)
def test_breaks_are_caught(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, apply = BREAKS[what]
    apply(monkeypatch.setattr)
    reorder = where == "convert-to-simt"
    case = BlockScaled(m=130 if reorder else 3, k=160)
    passes = (
        f"builtin.module(raise-block-scaled,{'reorder-scales,split-launches,' * reorder}{where})"
    )
    report = tcir.validate(case.linalg(), passes)
    assert [line.verdict for line in report.passes][-1] == "different", str(report)
    assert all(line.verdict in ("equal", "reference") for line in report.passes[:-1])


def test_sign_of_ue4m3_matters_to_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that keeps the sign bit fails `test_every_scale`."""
    real = simt.both_bits
    monkeypatch.setattr(simt, "both_bits", lambda a, b: a if b == 0x7F7F else real(a, b))
    with pytest.raises(AssertionError):
        test_every_scale()


def test_bytes_of_the_reordering_are_counted() -> None:
    """A kernel of its own reads the scales and writes whole blocks."""
    case = BlockScaled(m=130, k=32)
    counted = []
    for reorder in (False, True):
        kernel = tcir.compile(case.op(), "gemv-simt", rows=2, reorder=reorder)
        counted.append(kernel(*inputs_of(case).values(), np.zeros(130, np.float32)).counters)
    assert counted[1]["global_store"] - counted[0]["global_store"] == (2 + 1) * 512


def in_order(case: BlockScaled, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """NVFP4 times a vector in numpy: a lane takes 32 k at a time, its two blocks one by one.

    A block's sum is exact, each fma is one rounding, and the lanes are added half to half.
    """
    a, sa, b, sb = (x.astype(np.float64) for x in inputs.values())
    blocks = case.k // 16
    rounds = -(-blocks // 64)
    padding = ((0, 0), (0, rounds * 64 - blocks))
    sums = (a * b).reshape(case.m, blocks, 16).sum(-1)
    terms = np.pad(sums * sa * sb, padding).reshape(case.m, rounds, 32, 2)
    total = np.zeros((case.m, 32), np.float32)
    for term in terms.transpose(1, 3, 0, 2).reshape(-1, case.m, 32):
        total = (total + term).astype(np.float32)
    while total.shape[1] > 1:
        half = total.shape[1] // 2
        total = total[:, :half] + total[:, half:]
    return total[:, 0]


def test_order_of_the_sums() -> None:
    """All codes, and scales that make sums round: only this order has these bits."""
    case = BlockScaled(m=9, k=4096)
    inputs, rng = inputs_of(case), np.random.default_rng(8)
    for name, (low, high) in {"a": (0, 16), "b": (0, 16), "sa": (32, 80), "sb": (32, 80)}.items():
        codes = rng.integers(low, high, inputs[name].shape).astype(np.uint8)
        inputs[name] = codes.view(inputs[name].dtype)
    want, out = in_order(case, inputs), np.zeros(case.m, np.float32)
    tcir.compile(case.linalg(), "gemv-simt", target="sm_90")(*inputs.values(), out)
    assert out.tobytes() == want.tobytes()
    assert (out != product(case, **inputs)).any(), "some sums should be rounded on the way"


@pytest.mark.parametrize("target", ["sm_90", "sm_100a"])
def test_assembles(target: str) -> None:
    kernel = tcir.compile(BlockScaled(m=2, k=64).op(), "gemv-simt", target=target, rows=1)
    assert kernel.cubin[:4] == b"\x7fELF"
