"""Launches and numpy oracles of DeepGEMM's kernels: its host code's tensor maps and arguments."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from peers.case import Launch, case, rng, small
from peers.deep_gemm_kernels import GEMMS
from tcir.machine import TensorMap

NUMPY: dict[str, Any] = {
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
FP4 = np.arange(16, dtype="u1").view(NUMPY["e2m1"]).astype("f8")


def operand(generator: Any, dtype: str, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Values, and their storage (two codes of e2m1 in a byte)."""
    if dtype == "e2m1":
        codes = generator.integers(0, 16, shape).astype("u1")
        return FP4[codes], codes[..., ::2] | codes[..., 1::2] << 4
    stored = small(generator, shape, NUMPY[dtype])
    return stored.astype("f8"), stored


def tensor_map(
    array: np.ndarray, dtype: str, dims: list[int], box: list[int], swizzle: str = "128B"
) -> TensorMap:
    """Dense rows, the innermost dimension first."""
    inner = array.nbytes // int(np.prod(dims[1:]))
    strides = [inner * int(np.prod(dims[1:n])) for n in range(1, len(dims))]
    return TensorMap.tiled(
        array, dtype=dtype, dims=dims, strides_bytes=strides, box=box, swizzle=swizzle
    )


def scales(generator: Any, groups: int, rows: int, k: int, granularity: int) -> Any:
    """(factors per element of k [groups, rows, k], words [groups, k / (4 granularity), rows])."""
    columns = k // granularity
    exponents = generator.integers(125, 130, (groups, rows, columns)).astype("u1")
    factors = np.repeat(2.0 ** (exponents.astype("f8") - 127), granularity, axis=2)
    padded = np.full((groups, rows, -(-columns // 4) * 4), 127, "u1")
    padded[..., :columns] = exponents
    return factors, np.ascontiguousarray(padded.view("u4").transpose(0, 2, 1))


def layout(g: Any) -> tuple[int, int, int, np.ndarray]:
    """Rows of A per group, groups of A, groups of B, and the argument `grouped_layout`."""
    if g.kind == "MGroupedContiguous":
        return sum(g.rows), 1, g.groups, np.repeat(np.arange(g.groups, dtype="i4"), g.rows)
    listed = np.array(g.ks or g.rows or (0,), "i4")
    return g.m, g.groups, g.groups, listed


class Gemm:
    """The arrays of one launch and D's expected values."""

    def __init__(self, g: Any) -> None:
        self.g, r = g, rng()
        self.m, self.groups, groups_b, self.layout = layout(g)
        self.k = sum(g.ks) or g.k
        self.a, self.stored_a = self.operand(r, g.a, self.groups, self.m, 0)
        self.b, self.stored_b = self.operand(r, g.b, groups_b, g.n, 1)
        self.sfa = self.sfb = np.zeros(0)
        if g.scaled:
            factor, self.sfa = scales(r, self.groups, self.m, self.k, g.gran[0])
            self.a = self.a * factor
            factor, self.sfb = scales(r, groups_b, g.n, self.k, g.gran[1])
            self.b = self.b * factor
        shape = (self.groups, self.m, g.n)
        self.d = small(r, shape, NUMPY[g.d]) if g.accumulate else np.zeros(shape, NUMPY[g.d])
        self.want = self.expected()

    def operand(self, r: Any, dtype: str, groups: int, rows: int, place: int) -> Any:
        """Values as [groups, rows, k]; groups along k are one group here."""
        if self.g.ks:
            groups = 1
        if self.g.major.split()[place] == "K":
            return operand(r, dtype, (groups, rows, self.k))
        values, stored = operand(r, dtype, (groups, self.k, rows))
        return values.transpose(0, 2, 1), stored

    def expected(self) -> np.ndarray:
        g, want = self.g, self.d.astype("f8")
        if g.kind == "MGroupedContiguous":
            for group in range(g.groups):
                rows = self.layout == group
                want[0, rows] += self.a[0, rows] @ self.b[group].T
        elif g.ks:
            ends = np.cumsum(g.ks)
            for group, (end, size) in enumerate(zip(ends, g.ks, strict=True)):
                step = slice(end - size, end)
                want[group] += self.a[0][:, step] @ self.b[0][:, step].T
        else:
            want += self.a @ self.b.transpose(0, 2, 1)
        if g.kind == "MGroupedMasked":  # whole tiles are stored
            for group, rows in enumerate(g.rows):
                want[group, -(-rows // g.block[0]) * g.block[0] :] = 0
        return want.astype(self.d.dtype)

    def operand_map(self, array: np.ndarray, dtype: str, place: int) -> TensorMap:
        """One swizzle span of 128 bytes wide."""
        g, rows, block = self.g, (self.m, self.g.n)[place], self.g.block[place]
        if g.pair == "AB"[place]:
            block //= 2
        kind = {"e4m3": "u8", "e2m1": "u4_align16b" if g.a == "e4m3" else "u4_align8b"}
        wide = {"bf16": 64, "e4m3": 128, "e2m1": 128 if g.a == "e4m3" else 256}[dtype]
        k_major = g.major.split()[place] == "K"
        groups = array.shape[0]
        inner, outer = (self.k, rows) if k_major else (rows, self.k)
        box = [wide, block if k_major else g.block[2]]
        if g.kind == "Batched":
            dims, box = [inner, outer, groups], [*box, 1]
        else:
            dims = [inner, outer * groups]
        return tensor_map(array, kind.get(dtype, dtype), dims, box)

    def scale_map(self, words: np.ndarray, place: int) -> TensorMap:
        groups, columns, rows = words.shape
        block, steps = -(-self.g.block[place] // 128) * 128, self.g.block[2] // 128
        return tensor_map(words, "u32", [rows, columns * groups], [block, steps], "NONE")

    def result_map(self) -> TensorMap:
        g = self.g
        box = [128 // self.d.itemsize, 16 if g.swap else g.block[0]]
        dims = [g.n, self.m * self.groups]
        if g.kind == "Batched" or g.ks:
            dims, box = [g.n, self.m, self.groups], [*box, 1]
        return tensor_map(self.d, g.d, dims, box)


def launch(meta: dict[str, Any]) -> Launch:
    g = SimpleNamespace(**meta["gemm"])
    g.scaled = g.a != "bf16"
    run = Gemm(g)
    maps = [run.operand_map(run.stored_a, g.a, 0), run.operand_map(run.stored_b, g.b, 1)]
    if g.scaled:
        maps += [run.scale_map(run.sfa, 0), run.scale_map(run.sfb, 1)]
    sizes = [np.int32(v) for v in (run.m, g.n, run.k)]
    epilogue = bytes(24) + np.float32(1).tobytes() + bytes(20)
    args = [run.layout, *sizes, epilogue, *maps, run.result_map()]
    return Launch((g.sms,), args, [(run.d, run.want, 0)], (2 if g.pair else 1, 1, 1))


for _name in GEMMS:
    case("deep_gemm", _name)(launch)
