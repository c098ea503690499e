"""Forms of the block-scaled tcgen05.mma: A in tensor memory, and sparse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.passes.nvvm import block_scale

from .programs import SPANS, check, kernel, store, tile

M, N, STEPS = 128, 32, 2
TYPES: dict[str, tuple[Any, int]] = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 8),
    "e5m2": (ml_dtypes.float8_e5m2, 8),
    "e2m3": (ml_dtypes.float6_e2m3fn, 6),
    "e3m2": (ml_dtypes.float6_e3m2fn, 6),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4),
}
"""Name in PTX -> numpy type, bits."""
FORMATS = {4: "b4x16_p64", 6: "b6x16_p32"}
"""Bits of a padded element -> source format of the copy that gives it a byte."""
D, SF = f"!tc.tmem<array<i64: 128, {N}>, f32>", "!tc.tmem<array<i64: 128, 32>, i8>"


@dataclass(frozen=True)
class Form:
    """A kind with its types; `block` as the qualifier of the instruction says."""

    kind: str
    block: int
    a: str
    b: str
    scale: str

    @property
    def k(self) -> int:
        """K of one instruction: 32 bytes of every row."""
        return 32 if self.kind == "mxf8f6f4" else 64

    @property
    def scales(self) -> int:
        """Scales of a row of one instruction."""
        return self.k // self.block

    @property
    def padded(self) -> bool:
        """Whether 16 elements of A take 16 bytes in shared memory."""
        return self.kind == "mxf8f6f4" and TYPES[self.a][1] < 8

    def stored(self, codes: Any, element: str) -> Any:
        """Bytes of a row in shared memory (PTX ISA 9.7.16.10.4); padding is 0xAA."""
        if self.kind != "mxf8f6f4":
            return codes[:, ::2] | codes[:, 1::2] << 4
        bits = TYPES[element][1]
        if bits == 8:
            return codes
        units = codes.reshape(len(codes), -1, 16)
        stream = np.unpackbits(units[..., None], axis=-1, bitorder="little")[..., :bits]
        held = np.full_like(units, 0xAA)
        held[..., : 2 * bits] = np.packbits(
            stream.reshape(*units.shape[:2], -1), axis=-1, bitorder="little"
        )
        return held.reshape(len(codes), -1)

    def step(self, j: int) -> str:
        """Attributes of step `j`: its scales are byte `id` of 4 columns."""
        column, id_ = divmod(j * self.scales, 4)
        return (
            f'kind = "{self.kind}", a_type = "{self.a}", b_type = "{self.b}", scale_type = '
            f'"{self.scale}", block = {self.block} : i64, a_slice = {j} : i64, b_slice = {j} : i64,'
            f" sfa_column = {4 * column} : i64, sfb_column = {4 * column} : i64, sfa_id = {id_} : "
            f"i64, sfb_id = {id_} : i64"
        )


def elements(generator: Any, shape: tuple[int, int], element: str) -> tuple[Any, Any]:
    """Codes, and their values: multiples of a half, so that all sums are exact."""
    dtype = TYPES[element][0]
    values = (generator.integers(-4, 5, shape) / 2).astype(dtype)
    return values.view(np.uint8), values.astype(np.float32)


def scales(generator: Any, rows: int, count: int, kind: str) -> tuple[Any, Any]:
    """Codes [rows, count] and values of scale factors."""
    if kind == "ue8m0":
        codes = generator.integers(126, 129, (rows, count)).astype(np.uint8)
        return codes, np.ldexp(np.float32(1), codes.astype(int) - 127)
    values = generator.choice([0.5, 1.0, 1.5, 2.0], (rows, count)).astype(ml_dtypes.float8_e4m3fn)
    return values.view(np.uint8), values.astype(np.float32)


def blocks(codes: Any) -> Any:
    """Blocks of 128 rows times 4 scales, each 32 rows of 16 bytes (PTX ISA 9.7.16.10.7)."""
    out = np.full((32 * -(-codes.shape[1] // 4), 16), 0xFF, np.uint8)
    for row, scale in np.ndindex(codes.shape):
        block, byte = divmod(scale, 4)
        out[32 * block + row % 32, 4 * (row // 32) + byte] = codes[row, scale]
    return out.view(np.int8)


def smem_type(shape: tuple[int, int], swizzle: str) -> str:
    return f'!tc.smem<array<i64: {shape[0]}, {shape[1]}>, i8, "K", "{swizzle}">'


def copies(sources: dict[str, Any]) -> list[str]:
    """The scale factors into their tiles of tensor memory."""
    return [
        f'"tc.cp_scales"(%ss{x}, %sf{x}, %c{4 * block}) {{block = {block} : i64}} : '
        f"({smem_type(codes.shape, 'NONE')}, {SF}, index) -> ()"
        for x, codes in sources.items()
        for block in range(len(codes) // 32)
    ]


def swizzle_of(stored: Any) -> str:
    """The swizzle whose span is a row."""
    return next(name for name, span in SPANS.items() if span == stored.shape[1])


FORMS: list[Any] = [
    Form("mxf4nvf4", 16, "e2m1", "e2m1", "ue4m3"),
    Form("mxf8f6f4", 32, "e2m1", "e3m2", "ue8m0"),
    Form("mxf4nvf4", 32, "e2m1", "e2m1", "ue8m0"),
    Form("mxf4", 32, "e2m1", "e2m1", "ue8m0"),
    Form("mxf8f6f4", 32, "e5m2", "e4m3", "ue8m0"),
    Form("mxf8f6f4", 32, "e2m3", "e2m1", "ue8m0"),
]


E = "!tc.tmem<array<i64: 128, 8>, i32>"
SE = '!tc.smem<array<i64: 128, 8>, i32, "K", "32B">'


def chosen_of(generator: Any, chunks: int) -> Any:
    """Of four, the two that A stores: [M, chunks, 2], in order."""
    order = generator.permuted(np.broadcast_to(np.arange(4), (M, chunks, 4)), axis=2)
    return np.sort(order[..., :2], axis=2)


def metadata(chosen: Any) -> Any:
    """Words [lanes, columns]: 4 bits a chunk, two columns a step (PTX ISA 9.7.16.10.8)."""
    selectors = (chosen[..., 0] | chosen[..., 1] << 2).astype(np.uint32)
    words = np.zeros((M, 8), np.uint32)
    for chunk in range(selectors.shape[1]):
        words[:, chunk // 8] |= selectors[:, chunk] << np.uint32(4 * (chunk % 8))
    return words.view(np.int32)


def expanded(stored: Any, chosen: Any, group: int) -> Any:
    """A with the zeros that it does not store; `group`: neighbours chosen together."""
    chunks = chosen.shape[1]
    whole = np.zeros((M, chunks, 4, group), np.float32)
    np.put_along_axis(whole, chosen[..., None], stored.reshape(M, chunks, 2, group), axis=2)
    return whole.reshape(M, -1)


def product(form: Form, *, sparse: bool = False) -> tuple[str, list[Any], Any]:
    """Text, inputs and D of two steps; A is in tensor memory, or sparse in shared memory."""
    generator = np.random.default_rng(11)
    k, count = STEPS * form.k, STEPS * form.scales
    a, a_values = elements(generator, (M, k), form.a)
    b, b_values = elements(generator, (N, (1 + sparse) * k), form.b)
    (sfa, sfa_values), (sfb, sfb_values) = (
        scales(generator, rows, count, form.scale) for rows in (M, N)
    )
    x, w = form.stored(a, form.a).view(np.int8), form.stored(b, form.b).view(np.int8)
    sources = {"x": x, "w": w, "sa": blocks(sfa), "sb": blocks(sfb)}
    tiles = [tile("d", 0, D), tile("sfa", 64, SF), tile("sfb", 80, SF)]
    ax, bx = smem_type(x.shape, swizzle_of(x)), smem_type(w.shape, swizzle_of(w))
    steps = copies({"a": sources["sa"], "b": sources["sb"]})
    swizzles = {"x": swizzle_of(x), "w": swizzle_of(w), "sa": "NONE", "sb": "NONE", "sel": "32B"}
    if sparse:
        group = 1 if form.kind == "mxf8f6f4" else 2
        chosen = chosen_of(generator, k // (2 * group))
        a_values, sources["sel"] = expanded(a_values, chosen, group), metadata(chosen)
        tiles.append(tile("te", 96, E))
        steps.append(f'"tc.cp"(%ssel, %te) {{slice = 0 : i64}} : ({SE}, {E}) -> ()')
    else:
        at = f"!tc.tmem<array<i64: 128, {32 * STEPS}>, i8>"
        tiles.append(tile("ta", 32, at))
        source = f', format = "{FORMATS[TYPES[form.a][1]]}"' if form.padded else ""
    for j in range(STEPS):
        accumulate = "true" if j else "false"
        if sparse:
            steps.append(
                f'"tc.mma_block_scale_sparse"(%d, %sx, %sw, %te, %sfa, %sfb, %{accumulate}) '
                f"{{{form.step(j)}, metadata_column = {2 * j} : i64}} : "
                f"({D}, {ax}, {bx}, {E}, {SF}, {SF}, i1) -> ()"
            )
            continue
        steps.append(
            f'"tc.cp_rows"(%sx, %ta) {{shape = "128x256b", multicast = "", row = 0 : i64, byte = '
            f"{32 * j} : i64, column = {8 * j} : i64{source}}} : ({ax}, {at}) -> ()"
        )
        steps.append(
            f'"tc.mma_block_scale"(%d, %ta, %sw, %sfa, %sfb, %{accumulate}) '
            f"{{{form.step(j)}}} : ({D}, {at}, {bx}, {SF}, {SF}, i1) -> ()"
        )
    rows = [
        "%m0 = arith.muli %me, %c32 : index",
        *store(D, N, "%m0", "%c0", "out", f"memref<{M}x{N}xf32>"),
    ]
    operands = [
        (name, "i32" if name == "sel" else "i8", array.shape, swizzles[name])
        for name, array in sources.items()
    ]
    text = kernel(operands, tiles, steps, rows, (M, N)).text()
    width = form.block * (1 + sparse)
    scaled_a, scaled_b = (
        values * np.repeat(factors, width, axis=1)
        for values, factors in ((a_values, sfa_values), (b_values, sfb_values))
    )
    return text, list(sources.values()), scaled_a @ scaled_b.T


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_in_tensor_memory(form: Form) -> None:
    """Copied there row by row; padded elements get a byte of their own."""
    check(*product(form))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_sparse(form: Form) -> None:
    """A stores two of four; a scale is for twice as many k."""
    check(*product(form, sparse=True))


def test_the_first_slice_in_place_of_the_second_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A break of the lowering: every step reads the same columns of A."""
    right = block_scale.matrix_a
    monkeypatch.setattr(block_scale, "matrix_a", lambda converter, a, index: right(converter, a, 0))
    with pytest.raises(AssertionError, match="threads, order None"):
        check(*product(FORMS[0]), orders=(None,))


def test_the_first_half_of_a_sparse_step_of_b_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A break of the lowering: steps of B of 32 bytes, as of a dense A."""
    monkeypatch.setattr(block_scale, "B_SLICES", 1)
    with pytest.raises(AssertionError, match="threads, order None"):
        check(*product(FORMS[0], sparse=True), orders=(None,))
