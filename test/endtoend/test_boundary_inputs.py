"""Inputs at boundaries: sums at ties, amax at ends of blocks, edges of groups; by ml_dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.program.signature import signature_of
from tcir.program.source import load_module, mlir_context
from tcir.validation.draws import Draw, Draws
from tcir.validation.settings import Settings

from .block_scaled_text import BlockScaled
from .epilogue_text import KEEP, TRUNCATE, Fused
from .linalg_text import Conv, Matmul
from .oracle import DTYPES
from .quantise_text import quantised
from .test_gemm_grouped import Grouped
from .test_gemm_quantise import E4M3, MXFP4, NVFP4, Case
from .test_quantise_apart import argument

Array = np.ndarray[Any, Any]
TIES = "ties and limits"
ROOT = Path(__file__).parents[2]
LAYERS = Path(__file__).parent / "layers"


def _draws(text: str) -> Draws:
    with mlir_context() as context:
        module = load_module(text, context)
        return Draws.of(module, signature_of(module), Settings())


def _of(text: str, words: str = TIES) -> Draw:
    (found,) = (draw for draw in _draws(text).more if draw.words == words)
    return found


def _midpoints(name: str) -> set[float]:
    """Between all neighbours of a format of 8 bits, with both signs, and beyond its largest."""
    numbers = np.arange(256, dtype=np.uint8).view(DTYPES[name]).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    ties = (numbers[1:] + numbers[:-1]) / 2
    over = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    return {*ties.tolist(), over, -over}


@pytest.mark.parametrize(
    ("element", "out"),
    [("f8E4M3FN", "f8E4M3FN"), ("f8E5M2", "f8E5M2"), ("bf16", "f8E4M3FN"), ("f32", "f8E5M2")],
)
def test_sums_are_at_all_ties_of_eight_bits(element: str, out: str) -> None:
    a, b = (
        x.astype(np.float64)
        for x in _of(Matmul(64, 32, 64, element=element, out=out).text()).inputs
    )
    assert _midpoints(out) <= set((a @ b).ravel().tolist())


@pytest.mark.parametrize(
    ("element", "out", "wanted"),
    [
        ("f16", "f16", [65504, 65520, 65512, 65528, 65536, 2.0**-25, 3 * 2.0**-25, 1 + 2.0**-11]),
        ("f8E5M2", "f16", [65504, 65520, 2.0**-25, 1 + 2.0**-11]),
        ("bf16", "bf16", [float.fromhex("0x1.ffp127"), 2.0**-134, 1 + 2.0**-8, 2 - 2.0**-8]),
    ],
)
def test_sums_are_at_ties_of_sixteen_bits(element: str, out: str, wanted: list[float]) -> None:
    a, b = (
        x.astype(np.float64)
        for x in _of(Matmul(64, 32, 64, element=element, out=out).text()).inputs
    )
    sums = set((a @ b).ravel().tolist())
    assert sums >= {sign * each for each in wanted for sign in (1, -1)}


def test_pixels_and_taps_of_a_convolution() -> None:
    x, w = (
        a.astype(np.float64)
        for a in _of(Conv(1, 6, 6, 16, 64, 3, 3, (1, 1, 1, 1), out="f16").text()).inputs
    )
    sums = sum(x[0, 1 + r, 1 + s] @ w[r, s] for r in range(3) for s in range(3))
    assert {65520.0, -65520.0, 2.0**-25} <= set(sums.tolist())


def test_constants_behind_a_scale_and_a_bias() -> None:
    """127 after s * alpha * 0.5 + bias + 1, so s = 252; alpha is 1 then and the bias 0."""
    body = """
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %high = arith.constant 127.0 : f32
    %x = arith.mulf %s, %al : f32
    %y = arith.mulf %x, %half : f32
    %z = arith.addf %y, %b : f32
    %u = arith.addf %z, %one : f32
    %t = arith.minimumf %u, %high : f32"""
    case = Fused(body + KEEP, {"b": ("f32", "n"), "al": ("f32", "")}, out="f32", m=40, n=32, k=32)
    a, b, bias, alpha = (x.astype(np.float64) for x in _of(case.linalg()).inputs)
    sums = set((a @ b).ravel().tolist())
    assert (bias == 0).all() and alpha == 1
    assert {252.0, float(2 * (np.nextafter(np.float32(127), np.float32(200)) - 1.0))} <= sums


def test_no_execution_where_nothing_has_a_boundary() -> None:
    """Of f32 results, and of a relu, which all inputs are around."""
    relu = "%z = arith.constant 0.0 : f32\n%t = arith.maximumf %s, %z : f32"
    for text in (
        (ROOT / "examples" / "resnet50_conv2_3x3.mlir").read_text(),
        Fused(relu + KEEP, out="f32", m=40, n=32, k=32).linalg(),
    ):
        assert TIES not in [draw.words for draw in _draws(text).more]
    assert TIES in [d.words for d in _draws(Fused(relu + TRUNCATE, m=40, n=32, k=32).linalg()).more]


def test_moderate_sums_before_a_function() -> None:
    """Of exp of any number there is no bound."""
    body = """
    %half = arith.truncf %s : f32 to bf16
    %wide = arith.extf %half : bf16 to f32
    %t = math.exp %wide : f32"""
    case = Fused(body + KEEP, out="f32", element="bf16", m=40, n=32, k=32)
    a, b = (x.astype(np.float64) for x in _of(case.linalg()).inputs)
    assert np.abs(a @ b).max() <= 16 and 1 + 2.0**-8 in a @ b


def _blocks(draw: Draw, block: int) -> Array:
    a, b = (x.astype(np.float64) for x in draw.inputs[:2])
    return (a @ b).reshape(-1, block)


@pytest.mark.parametrize(("formats", "k"), [(E4M3, 64), (E4M3, 16), (MXFP4, 64), (NVFP4, 64)])
def test_blocks(formats: tuple[str, str], k: int) -> None:
    """amax at ends of scales; each place of a block is negative and far the largest in one."""
    size = 16 if formats == NVFP4 else 32
    blocks = _blocks(_of(Case(formats, m=128, k=k).linalg()), size)
    places = np.abs(blocks).argmax(axis=1)
    amax = np.abs(blocks).max(axis=1)
    with np.errstate(all="ignore"):
        without = np.where(np.arange(size) == places[:, None], 0, np.abs(blocks)).max(axis=1)
    slips = (blocks[np.arange(len(blocks)), places] < 0) & (without < amax / 2)
    assert set(places[slips]) == set(range(size))
    if formats == NVFP4:
        sixth = (amax / 6).astype(np.float32)
        below, above = (x.astype(ml_dtypes.float8_e4m3fn) for x in (sixth * 0.9999, sixth * 1.0001))
        assert ((below != above) & (sixth < 448)).sum() > 10  # ties
    else:
        mantissas = set((amax / 2.0 ** np.floor(np.log2(amax))).tolist())
        assert {1.0, 1.75 if formats == E4M3 else 1.5} <= mantissas


def test_blocks_of_an_argument_with_its_neighbours() -> None:
    (x,) = _of(quantised(argument(256, 64), E4M3, rounding="rceil")).inputs
    amax = np.abs(x.reshape(-1, 32)).max(axis=1)
    at = {np.float32(1.75) * np.float32(2.0) ** n for n in range(-6, 4)}
    assert {np.nextafter(v, np.float32(9e9)) for v in at} & set(amax) and at & set(amax)


def test_the_clamps_of_a_quantisation() -> None:
    (x,) = _of((LAYERS / "quantise.mlir").read_text()).inputs
    scaled = set((x * np.float32(12.5)).ravel().tolist())
    assert {127.5, 126.5, -128.5, -127.5, 0.5, 2.5, 127.0, -128.0} <= scaled


def test_windows_without_a_number() -> None:
    (x,) = _of((LAYERS / "max_pool.mlir").read_text(), "windows of -inf only").inputs
    assert (x[0] == -np.inf).all() and (x[1, -1, 1:-1, 1:-1] == np.inf).all()
    between, largest = x[1, 1:-1, 1:-1, 1:-1], np.finfo(np.float32).max
    assert set(np.unique(between)) == {-np.inf, -largest, largest, np.inf}
    assert (np.abs(between) == largest).mean() > 3 / 4


def test_the_largest_number_stands_before_infinity() -> None:
    (x,) = _of((LAYERS / "argmax.mlir").read_text(), "windows of -inf only").inputs
    largest = np.finfo(np.float32).max
    first = [np.argmax(x == largest, axis=-1), np.argmax(x == np.inf, axis=-1)]
    assert (first[0] < first[1])[1:-1].any()
    least = [np.argmax(x[:, 1:] == -largest, axis=-1), np.argmax(x[:, 1:] == -np.inf, axis=-1)]
    assert (least[0] < least[1]).any()


@pytest.mark.parametrize("masked", [False, True])
def test_sizes_of_groups(masked: bool) -> None:
    draws = _draws(Grouped(4, 300, 24, 72, masked=masked).text)
    sizes = [draw.inputs[2] for draw in draws.more]
    assert len(sizes) == 3
    found = {int(each) for array in sizes for each in array}
    assert {0, 127, 128, 300} <= found and (not masked or {1, 129, 257, 256} <= found)
    for array in sizes:
        assert (array if masked else array.sum()).max() <= 300
    last = sizes[-1]
    assert (last == 300).all() if masked else (last.sum() == last.max() == 300)


def test_a_subnormal_global_scale() -> None:
    case = BlockScaled(m=128, n=16, k=256, alpha="after", out="bf16")
    scales = [a for a in _of(case.linalg(), "a subnormal global scale").inputs if not a.shape]
    tiny = np.finfo(np.float32).tiny
    assert 0 < scales[0] < tiny and all(each > 1 for each in scales[1:])


def test_sums_of_whole_numbers_past_24_bits() -> None:
    text = Conv(1, 10, 10, 128, 32, 3, 3, (1, 1, 1, 1), element="i8", out="i32").text()
    x, w = (a.astype(np.int64) for a in _draws(text).main.inputs)
    windows = [x[0, r : r + 8, s : s + 8] @ w[r, s] for r in range(3) for s in range(3)]
    sums = np.sum(windows, axis=0)
    assert ((sums > 1 << 24) & (sums % 2 == 1)).sum() > 10 and (sums < -(1 << 24)).any()
