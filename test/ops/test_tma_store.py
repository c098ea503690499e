"""Register tiles through swizzled shared memory and TMA to global memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.interp import OutputSpec

from .programs import (
    Kernel,
    check,
    commit,
    fence,
    load,
    outcomes,
    smem,
    tensor_map,
    tile,
    wait,
)

A = '!tc.smem<array<i64: 128, 64>, f16, "K", "128B">'
B = '!tc.smem<array<i64: {}, 64>, f16, "K", "128B">'
D = "!tc.tmem<array<i64: 128, {}>, f32>"
WIDTH = {"f32": 4, "f16": 2, "bf16": 2}


def operands(n: int) -> tuple[Any, Any]:
    generator = np.random.default_rng(n)
    return (
        generator.integers(-4, 5, (128, 64)).astype(np.float16),
        generator.integers(-4, 5, (n, 64)).astype(np.float16),
    )


def kernel(
    n: int = 64,
    element: str = "f16",
    swizzle: str = "128B",
    out: tuple[int, int] | None = None,
    columns: int = 16,
    drop: str = "",
    twice: str = "",
    late: bool = False,
) -> Kernel:
    """D = A Bᵀ; each warp stores its 32 rows through a tile of its own, one swizzle span at a time.

    drop: an op to leave out, by a part of its text. twice: store a second time, with a reduction.
    late: the turn waits for the store before it behind its writes to the tile.
    """
    out = out or (128, n)
    span = {"128B": 128, "64B": 64, "32B": 32}[swizzle]
    wide = span // WIDTH[element]
    slot = f'!tc.smem<array<i64: 32, {wide}>, {element}, "K", "{swizzle}">'
    ring = f"!tc.ring<4 : i64, {slot}>"
    b, d = B.format(n), D.format(n)
    vector = f"vector<32x{columns}x{element}>"
    f32 = f"vector<32x{columns}xf32>"
    o_type = f"memref<{out[0]}x{out[1]}x{element}>"
    mma = [
        f'"tc.mma"(%d, %a, %b, %{"true" if j else "false"}) {{a_slice = {j} : i64, '
        f"b_slice = {j} : i64, ashift = false}} : ({d}, {A}, {b}, i1) -> ()"
        for j in range(4)
    ]
    store = (
        '"tc.tma_store"(%mo, %n0, %m0, %mine) {row = 0 : i64, '
        "operandSegmentSizes = array<i32: 1, 2, 1>MORE} : "
        f"(!tc.tensor_map, index, index, {slot}) -> ()"
    )
    group = [store.replace("MORE", ""), '"tc.bulk_commit"() : () -> ()']
    turn = '"tc.bulk_wait"() {pending = 0 : i64, read = true, at = "turn"} : () -> ()'
    if late:
        group.insert(0, turn)
    if twice:
        group += ['"tc.bulk_wait"() {pending = 0 : i64, read = false} : () -> ()']
        group += [store.replace("MORE", f', reduction = "{twice}"'), group[1]]
    epilogue = [
        wait("done"),
        fence("tcgen05.after"),
        f'%mine = "tc.slot"(%tiles, %me) : ({ring}, index) -> {slot}',
        "%m0 = arith.muli %me, %c32 : index",
        f"scf.for %n0 = %c0 to %c{n} step %c{wide} {{",
        f"  scf.for %i = %c0 to %c{wide} step %c{columns} {{",
        "    %column = arith.addi %n0, %i : index",
        f'    %v = "tc.tmem_ld"(%d, %me, %column) : ({d}, index, index) -> {f32}',
        '    "tc.tmem_wait"() {kind = "ld"} : () -> ()',
        f"    %t = arith.truncf %v : {f32} to {vector}" if element != "f32" else "",
        f'    "tc.store_shared"({"%t" if element != "f32" else "%v"}, %mine, %c0, %i) : '
        f"({vector}, {slot}, index, index) -> ()",
        "  }",
        "  " + fence("proxy.async"),
        '  "tc.warp_barrier"() {after = "store"} : () -> ()',
        *group,
        "" if late else turn,
        '  "tc.warp_barrier"() : () -> ()',
        "}",
        '"tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()',
        fence("tcgen05.before"),
    ]
    epilogue = [line for line in epilogue if not drop or drop not in line]
    return Kernel(
        arguments=[f"%x: memref<128x64xf16>, %w: memref<{n}x64xf16>, %out: {o_type}"],
        setup=[
            tensor_map("mx", "x", (128, 64), "f16", (64, 128)),
            tensor_map("mw", "w", (n, 64), "f16", (64, n)),
            tensor_map("mo", "out", out, element, (wide, 32), swizzle),
            smem("a", 0, A),
            smem("b", 16384, b),
            smem("tiles", 16384 + 128 * n, ring),
        ],
        roles=[
            ("producer", [4], "one", [
                *load("mx", ["c0", "c0"], "a", A, 16384),
                *load("mw", ["c0", "c0"], "b", b, 128 * n),
            ]),
            ("mma", [5], "one", [wait("full"), fence("tcgen05.after"), *mma, commit("done")]),
            ("epilogue", [0, 1, 2, 3], "warp", epilogue),
        ],
        smem=16384 + 128 * n + 4 * 32 * span,
        columns=max(32, n),
        arrivals={"full": 2, "done": 1},
        tiles=[tile("d", 0, d)],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("element", "swizzle", "columns"),
    [
        ("f16", "128B", 16),
        ("f16", "64B", 32),
        ("f32", "128B", 16),
        ("f32", "32B", 8),
        ("f32", "128B", 32),
        ("bf16", "128B", 8),
    ],
)
def test_stores_every_element(element: str, swizzle: str, columns: int) -> None:
    import ml_dtypes

    x, w = operands(64)
    kind = {"f16": np.float16, "f32": np.float32, "bf16": ml_dtypes.bfloat16}[element]
    expected = (x.astype(np.float32) @ w.astype(np.float32).T).astype(kind)
    check(kernel(64, element, swizzle, columns=columns).text(), [x, w], expected)


def test_elements_outside_the_tensor_are_not_stored() -> None:
    x, w = operands(64)
    expected = (x.astype(np.float32) @ w.astype(np.float32).T)[:100, :40]
    check(kernel(64, "f32", out=(100, 40)).text(), [x, w], expected)


@pytest.mark.parametrize("reduction", ["add", "min", "max"])
def test_reduction(reduction: str) -> None:
    x, w = operands(64)
    product = (x.astype(np.float32) @ w.astype(np.float32).T).astype(np.float16)
    expected = 2 * product if reduction == "add" else product
    check(kernel(64, twice=reduction).text(), [x, w], expected)


@pytest.mark.parametrize(
    ("drop", "code", "threads_only"),
    [
        ("proxy.async", "missing-proxy-fence", False),
        ('after = "store"', "race", True),
        ("", "race", False),
    ],
)
def test_a_missing_edge_is_found(drop: str, code: str, threads_only: bool) -> None:
    """Without a wait the kernel rule `staged-tile-reuse` refuses it; here it comes too late.

    Between lanes of a warp only at the levels that have lanes.

    The barrier after the wait is not here: tcgen05.ld of the next turn joins the lanes as well.
    """
    x, w = operands(128)
    spec = [OutputSpec((128, 128), np.dtype(np.float16))]
    text = kernel(128, drop=drop, late=not drop).text()
    for where, outcome in outcomes(text, [x, w], spec, (None,)):
        codes = {finding.code for finding in outcome.findings}
        if threads_only and where.startswith("tiles"):
            assert not codes
        else:
            assert code in codes, (where, codes)


def test_scattered_rows() -> None:
    """Rows 3, 11, 0 and 8 of the result; the rest by an ordinary store of zeros before."""
    slot = '!tc.smem<array<i64: 32, 32>, f32, "K", "128B">'
    scattered = Kernel(
        arguments=["%out: memref<32x32xf32>"],
        setup=[
            tensor_map("whole", "out", (32, 32), "f32", (32, 32)),
            tensor_map("rows", "out", (32, 32), "f32", (32, 1)),
            smem("tile", 0, slot),
            "%c11 = arith.constant 11 : index",
            "%zero = arith.constant dense<0.0> : vector<32x32xf32>",
            "%one = arith.constant dense<1.0> : vector<32x32xf32>",
        ],
        roles=[("epilogue", [0], "warp", [
            *(
                line
                for value, map_, coords in (
                    ("zero", "whole", "%c0, %c0"),
                    ("one", "rows", "%c0, %c3, %c11, %c0, %c8"),
                )
                for line in (
                    f'"tc.store_shared"(%{value}, %tile, %c0, %c0) : '
                    f"(vector<32x32xf32>, {slot}, index, index) -> ()",
                    fence("proxy.async"),
                    '"tc.warp_barrier"() : () -> ()',
                    f'"tc.tma_store"(%{map_}, {coords}, %tile) {{row = 0 : i64, '
                    f"operandSegmentSizes = array<i32: 1, {coords.count('%')}, 1>}} : "
                    f"(!tc.tensor_map, {', '.join(['index'] * coords.count('%'))}, {slot}) -> ()",
                    '"tc.bulk_commit"() : () -> ()',
                    '"tc.bulk_wait"() {pending = 0 : i64, read = false} : () -> ()',
                    '"tc.warp_barrier"() : () -> ()',
                )
            )
        ])],
        smem=4096,
    )  # fmt: skip
    expected = np.zeros((32, 32), np.float32)
    expected[[3, 11, 0, 8]] = 1
    check(scattered.text(), [], expected)
