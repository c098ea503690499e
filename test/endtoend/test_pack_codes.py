"""``tc.pack_codes`` and ``tc.unpack_codes``: kernels of a module, against numpy, at every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.errors import PassError
from tcir.passes.emit import simt
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passes.simt import codes as convert

from .block_scaled_oracle import DTYPES, inputs_of, product
from .block_scaled_text import F4, F6A, F6B, F8A, UE8M0, BlockScaled, from_codes

BITS = {F4: 4, F6A: 6, F6B: 6}
LOWERING = ["split-launches", "convert-to-simt", "cse", *LOWER_TO_LLVM]
CASES = [
    (F4, (3, 32)), (F6B, (5, 4)), (F6A, (2, 24)), (F4, (5, 3, 2)), (F4, (16,)), (F6B, (4,)),
    (F6A, (2, 3, 64)), (F4, (257, 48)),
]  # fmt: skip


def program(element: str, shape: tuple[int, ...], what: str) -> str:
    """@f packs ("pack"), unpacks ("unpack"), or one after the other ("both")."""
    size = "x".join(map(str, shape))
    codes, packed = f"tensor<{size}xi8>", f"tensor<{size}x{element}>"
    pack = f'%p = "tc.pack_codes"(%c) : ({codes}) -> {packed}'
    unpack = f'%d = "tc.unpack_codes"(%p) : ({packed}) -> {codes}'
    body = {
        "pack": f"(%c: {codes}) -> {packed} {{\n{pack}\nreturn %p : {packed}",
        "unpack": f"(%p: {packed}) -> {codes} {{\n{unpack}\nreturn %d : {codes}",
        "both": f"(%c: {codes}) -> {codes} {{\n{pack}\n{unpack}\nreturn %d : {codes}",
    }[what]
    return f"func.func @f{body}\n}}"


def dense(codes: np.ndarray, bits: int) -> np.ndarray:
    """A little-endian stream of the low bits of each byte."""
    planes = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
    return np.packbits(planes.reshape(-1), bitorder="little")


def all_codes(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize(
    ("element", "shape"),
    CASES,
    ids=str,
)
def test_every_level_and_bytes(element: str, shape: tuple[int, ...]) -> None:
    """The order of elements in memory, and that what is above a code is ignored."""
    bits, codes = BITS[element], all_codes(shape)
    low = (codes & (2**bits - 1)).view(DTYPES[element])
    images = {}
    for what in ("pack", "unpack", "both"):
        kernel = tcir.compile(program(element, shape, what), LOWERING, validate=True)
        report = kernel.report
        assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
        assert not any(line.findings for line in report.passes)
        given = low if what == "unpack" else codes.view(np.int8)
        spec = kernel.signature.outputs[0]
        out = np.zeros(spec.shape, spec.dtype)
        counters = kernel(given, out).counters
        assert (out.view(np.uint8) == low.view(np.uint8)).all()
        few, many = codes.size * bits // 8, codes.size
        read, written = {"pack": (many, few), "unpack": (few, many)}.get(what, (many + few,) * 2)
        assert (counters["global_load"], counters["global_store"]) == (read, written)
        images[what] = kernel
    image = np.zeros((*shape[:-1], shape[-1] * bits // 8), np.uint8)
    images["pack"](codes.view(np.int8), image)
    assert image.tobytes() == dense(codes, bits).tobytes()
    back = np.zeros(shape, np.int8)
    images["unpack"](image, back)
    assert (back.view(np.uint8) == codes & (2**bits - 1)).all()


GEMVS = [
    (BlockScaled(m=3, k=96, out="f16"), "gemv-simt", "ab", {"rows": 1}),
    (BlockScaled(m=130, k=256), "gemv-padded-n", "a", {"schedule": "single"}),
    (BlockScaled(m=3, k=64, split=True), "gemv-simt", "ab", {"reorder": True}),
    (BlockScaled(m=5, k=256, split=True, n=2), "gemv-padded-n", "b", {"schedule": "split-k"}),
    (BlockScaled(m=9, k=128, a=F6B, b=F8A, scale=UE8M0, block=32), "gemv-padded-n", "a", {}),
    (BlockScaled(m=2, k=64, a=F6A, b=F4, scale=UE8M0, block=32, batch=2), "gemv-simt", "ab", {}),
]


@pytest.mark.parametrize(
    ("case", "pipeline", "sides", "options"),
    GEMVS,
    ids=str,
)
def test_products_of_codes(
    case: BlockScaled, pipeline: str, sides: str, options: dict[str, Any]
) -> None:
    """From linalg, equal after every pass; from PTX, with all bits above the codes set."""
    text = from_codes(case, case.linalg(), sides)
    kernel = tcir.compile(text, pipeline, validate=True, **options)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}, str(
        kernel.report
    )
    assert not any(line.findings for line in kernel.report.passes)
    inputs = inputs_of(case, seed=5)
    want, given = product(case, **inputs), dict(inputs)
    for side in sides:
        given[side] = (inputs[side].view(np.uint8) | 0xFF << BITS[getattr(case, side)] & 0xFF).view(
            np.int8
        )
    arrays = [
        array.reshape(spec.shape)
        for array, spec in zip(given.values(), kernel.signature.inputs, strict=True)
    ]
    out = np.zeros_like(want)
    counters = kernel(*arrays, out).counters
    assert out.tobytes() == want.tobytes()
    plain = tcir.compile(case.linalg(), pipeline, **options)
    arrays = [
        array.reshape(spec.shape)
        for array, spec in zip(inputs.values(), plain.signature.inputs, strict=True)
    ]
    without = plain(*arrays, out).counters
    packed = sum(inputs[side].size * BITS[getattr(case, side)] // 8 for side in sides)
    assert counters["global_store"] == without["global_store"] + packed
    codes = sum(inputs[side].size for side in sides)
    assert counters["global_load"] == without["global_load"] + codes


def test_real_size_assembles() -> None:
    """A of (7168, 16384), packed on the way: two more launches, a workspace of 56 MiB."""
    case = BlockScaled(m=7168, k=16384)
    kernel = tcir.compile(from_codes(case, case.linalg(), "a"), "gemv-padded-n")
    names = [launch.title for launch in kernel.launches.launches]
    assert names[:2] == ["f_pack0", "f_scales1"] and names[2] == "f"
    assert kernel.launches.launches[0].grid == (7168 * 16384 // 16 // 256, 1, 1)
    assert kernel.launches.workspaces.sizes[0] == 7168 * 16384 // 2
    assert kernel.cubin[:4] == b"\x7fELF"


def test_real_size_from_ptx() -> None:
    """The matrices of (7168, 2048, 4), 56 MiB of codes, from PTX."""
    shape = (4, 7168, 2048)
    codes = all_codes(shape)
    image = np.zeros((4, 7168, 1024), np.uint8)
    kernel = tcir.compile(program(F4, shape, "pack"), LOWERING)
    counters = kernel(codes.view(np.int8), image, hazards="off").counters
    assert (image == (codes[..., ::2] & 15 | codes[..., 1::2] << 4)).all()
    assert counters["global_load"] == codes.size == 2 * counters["global_store"]


def test_what_is_packed_twice_is_refused() -> None:
    """Elements are read from global memory: a product of the result of something else is not."""
    case = BlockScaled(m=3, k=64)
    text = from_codes(case, case.linalg(), "a")
    text = text.replace("(%ca) : (tensor<3x64xi8>)", "(%q) : (tensor<3x64xi8>)").replace(
        '%a = "tc.pack', '%q = arith.addi %ca, %ca : tensor<3x64xi8>\n%a = "tc.pack'
    )
    with pytest.raises(PassError, match=r"got (arith\.addi|the result of tc\.pack_codes)"):
        tcir.compile(text, "gemv-simt")


# --- breaks --------------------------------------------------------------------------------------

_TOGETHER, _REJOINED = convert._together, convert._rejoined


def _swapped(word: Any, bits: int) -> Any:
    """The two nibbles of every byte exchanged."""
    found = _TOGETHER(word, bits)
    low, high = simt.both_bits(found, 0x0F0F), simt.both_bits(found, 0xF0F0)
    return simt.either_bits(simt.left(low, 4), simt.right(high, 4))


def _unmasked(a: Any, b: Any) -> Any:
    """The mask of the codes in a word left out."""
    return a if b == 0x0F0F0F0F else simt_both_bits(a, b)


simt_both_bits = simt.both_bits
BREAKS = {
    "nibble order swapped": (convert, "_together", _swapped),
    "upper nibble not masked": (simt, "both_bits", _unmasked),
    "strings joined backwards": (convert, "_rejoined", lambda p, h, w: _REJOINED(p[::-1], h, w)),
    "a tail left out": (simt, "ceil_div", lambda a, b: a // b),
}


@pytest.mark.parametrize("what", BREAKS)
def test_breaks_are_caught(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BREAKS[what])
    case = BlockScaled(m=130, k=64)
    report = tcir.validate(from_codes(case, case.linalg(), "a"), LOWERING_OF_BREAKS)
    assert [line.verdict for line in report.passes if line.verdict != "not executed"][-1] == (
        "different"
    ), str(report)
    assert report.passes[-1].name == "convert-to-simt"
    assert all(line.verdict in ("equal", "reference") for line in report.passes[:-1])


LOWERING_OF_BREAKS = ["raise-block-scaled", "split-launches", "convert-to-simt"]
