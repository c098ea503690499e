"""Forms of tcgen05.mma: scale-input-d, collector buffers, .ws and sparse A."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.interp import OutputSpec
from tcir.passes.nvvm import compute

from .programs import check, kernel, outcomes, store, tile

B = '!tc.smem<array<i64: {}, 64>, f16, "K", "128B">'
D = "!tc.tmem<array<i64: 128, {}>, f32>"


def operands(*shapes: tuple[int, int]) -> list[Any]:
    generator = np.random.default_rng(len(shapes))
    return [generator.integers(-4, 5, shape).astype(np.float16) for shape in shapes]


def product(a: Any, b: Any) -> Any:
    return a.astype(np.float32) @ b.astype(np.float32).T


def mma(d: str, a: str, b: str, j: int, types: str, accumulate: bool, more: str = "") -> str:
    return (
        f'"tc.mma"(%{d}, %{a}, %{b}, %{str(accumulate).lower()}) {{a_slice = {j} : i64, '
        f"b_slice = {j} : i64, ashift = false{more}}} : ({types}, i1) -> ()"
    )


A128 = '!tc.smem<array<i64: 128, 64>, f16, "K", "128B">'
TYPES = f"{D.format(64)}, {A128}, {B.format(64)}"


def test_scale_input_d() -> None:
    """D is divided by 8 before the last step: exactly, as a power of two."""
    x, w = operands((128, 64), (64, 64))
    steps = [
        mma("d", "sx", "sw", j, TYPES, j > 0, ", scale_d = 3 : i64" * (j == 3)) for j in range(4)
    ]
    expected = product(x[:, :48], w[:, :48]) / 8 + product(x[:, 48:], w[:, 48:])
    rows = [
        "%m0 = arith.muli %me, %c32 : index",
        *store(D.format(64), 64, "%m0", "%c0", "out", "memref<128x64xf32>"),
    ]
    text = kernel(
        [("x", "f16", (128, 64), "128B"), ("w", "f16", (64, 64), "128B")],
        [tile("d", 0, D.format(64))],
        steps,
        rows,
        (128, 64),
    ).text()
    check(text, [x, w], expected)


def two_columns(first: str, second: str) -> str:
    """Two products of the same A, whose collector buffer the mma of the first fills."""
    steps = [
        mma(f"d{i}", "sx", name, j, TYPES, j > 0, f', collector = "{use}"')
        for j in range(4)
        for i, (name, use) in enumerate((("sw", first), ("su", second)))
    ]
    epilogue = ["%m0 = arith.muli %me, %c32 : index"]
    for i in range(2):
        epilogue += store(
            D.format(64), 64, "%m0", f"%c{64 * i}", "out", "memref<128x128xf32>", f"d{i}"
        )
    return kernel(
        [("x", "f16", (128, 64), "128B"), ("w", "f16", (64, 64), "128B"),
         ("u", "f16", (64, 64), "128B")],
        [tile(f"d{i}", 64 * i, D.format(64)) for i in range(2)], steps, epilogue, (128, 128),
    ).text()  # fmt: skip


def test_collector_of_a() -> None:
    x, w, u = operands((128, 64), (64, 64), (64, 64))
    expected = np.concatenate([product(x, w), product(x, u)], axis=1)
    check(two_columns("fill", "lastuse"), [x, w, u], expected)


def test_a_collector_that_nothing_filled_is_found() -> None:
    x, w, u = operands((128, 64), (64, 64), (64, 64))
    spec = [OutputSpec((128, 128), np.dtype(np.float32))]
    for where, outcome in outcomes(two_columns("discard", "use"), [x, w, u], spec, (None,)):
        assert {f.code for f in outcome.findings} == {"collector-not-filled"}, where


@pytest.mark.parametrize(("m", "n"), [(32, 128), (64, 64)])
def test_weight_stationary(m: int, n: int) -> None:
    """Lanes 32 w and up hold columns of D of their own where M < 128."""
    x, w = operands((m, 64), (n, 64))
    columns = n * m // 128
    a, b, d = f'!tc.smem<array<i64: {m}, 64>, f16, "K", "128B">', B.format(n), D.format(columns)
    steps = [
        f'"tc.mma_ws"(%d, %sx, %sw, %{"true" if j else "false"}) {{a_slice = {j} : i64, '
        f'b_slice = {j} : i64, buffer = "b1", collector = "fill"}} : ({d}, {a}, {b}, i1) -> ()'
        for j in range(4)
    ]
    text = kernel(
        [("x", "f16", (m, 64), "128B"), ("w", "f16", (n, 64), "128B")],
        [tile("d", 0, d)],
        steps,
        store_folded(m, n),
        (m, n),
    ).text()
    check(text, [x, w], product(x, w))


def store_folded(m: int, n: int) -> list[str]:
    """Stores D of a weight-stationary product, whose columns are on the lanes behind each other."""
    columns = n * m // 128
    place = [
        f"%ng = arith.constant {m // 32} : index",
        "%down = arith.remui %me, %ng : index",
        "%right = arith.divui %me, %ng : index",
        "%m0 = arith.muli %down, %c32 : index",
        f"%n0 = arith.muli %right, %c{columns} : index",
    ]
    return [*place, *store(D.format(columns), columns, "%m0", "%n0", "out", f"memref<{m}x{n}xf32>")]


def metadata(chosen: Any) -> Any:
    """Words [lanes, columns] that select elements ``chosen[m, chunk]`` = (low, high) of four.

    PTX ISA 9.7.16.10.8 for 16-bit types, two instructions of K = 32: column = selector. Of fewer
    than 128 rows as many copies as fill the lanes.
    """
    words = np.zeros((len(chosen), 8), np.uint32)
    for m in range(len(chosen)):
        for chunk in range(chosen.shape[1]):
            low, high = (int(position) for position in chosen[m, chunk])
            column, k = divmod(4 * chunk, 32)
            lane = m % 8 + 8 * (k // 16) + 16 * (m // 16)
            bit = k % 16 + 16 * (m // 8 % 2)
            words[lane, column] |= np.uint32((low | high << 2) << bit)
    return np.tile(words, (128 // len(chosen), 1)).view(np.int32)


def sparse(m: int, n: int) -> tuple[list[Any], Any]:
    """What A stores of K = 64, B, metadata; and the product."""
    generator = np.random.default_rng(5)
    stored, w = operands((m, 32), (n, 64))
    chosen = np.sort(
        np.stack([generator.permutation(4)[:2] for _ in range(m * 16)]), axis=1
    ).reshape(m, 16, 2)
    whole = np.zeros((m, 64), np.float16)
    for chunk in range(16):
        for half in range(2):
            rows = np.arange(m)
            whole[rows, 4 * chunk + chosen[:, chunk, half]] = stored[:, 2 * chunk + half]
    return [stored, w, metadata(chosen)], product(whole, w)


def sparse_text(name: str, m: int, n: int, columns: int, more: str, rows: list[str]) -> str:
    """Two steps of the op `name`, K = 32 each; D has `columns`."""
    a = f'!tc.smem<array<i64: {m}, 32>, f16, "K", "64B">'
    e, se = "!tc.tmem<array<i64: 128, 8>, i32>", '!tc.smem<array<i64: 128, 8>, i32, "K", "32B">'
    d, b = D.format(columns), B.format(n)
    steps = [
        f'"tc.cp"(%ssel, %te) {{slice = 0 : i64}} : ({se}, {e}) -> ()',
        *(
            f'"{name}"(%d, %sx, %sw, %te, %{"true" if j else "false"}) '
            f"{{a_slice = {j} : i64, b_slice = {j} : i64, metadata_column = 0 : i64, "
            f"selector = {j} : i64{more}}} : ({d}, {a}, {b}, {e}, i1) -> ()"
            for j in range(2)
        ),
    ]
    return kernel(
        [("x", "f16", (m, 32), "64B"), ("w", "f16", (n, 64), "128B"),
         ("sel", "i32", (128, 8), "32B")],
        [tile("d", 0, d), tile("te", 64, e)], steps, rows, (m, n),
    ).text()  # fmt: skip


def test_sparse() -> None:
    inputs, expected = sparse(128, 64)
    rows = [
        "%m0 = arith.muli %me, %c32 : index",
        *store(D.format(64), 64, "%m0", "%c0", "out", "memref<128x64xf32>"),
    ]
    check(sparse_text("tc.mma_sparse", 128, 64, 64, "", rows), inputs, expected)


def folded_sparse(m: int, n: int) -> tuple[str, list[Any], Any]:
    more = ', buffer = "b3", collector = "fill"'
    text = sparse_text("tc.mma_ws_sparse", m, n, n * m // 128, more, store_folded(m, n))
    return text, *sparse(m, n)


@pytest.mark.parametrize(("m", "n"), [(32, 128), (64, 64)])
def test_weight_stationary_sparse(m: int, n: int) -> None:
    check(*folded_sparse(m, n))


def test_the_first_half_of_a_sparse_step_of_b_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A break of the lowering: steps of B of 32 bytes, as of a dense A."""
    monkeypatch.setattr(compute, "B_SLICES", 1)
    with pytest.raises(AssertionError, match="threads, order None"):
        check(*folded_sparse(32, 128), orders=(None,))
