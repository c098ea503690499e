"""Copies, shifts and A in tensor memory with ``cta_group = 2``, executed by a pair of CTAs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec
from tcir.interp import tile as tile_level
from tcir.machine import MachineError
from tcir.passes.nvvm import halo
from tcir.run_options import RunOptions

from .programs import Kernel, check, fence, load, smem, store, tensor_map, tile, wait

N = 32
A, A_TMEM = '!tc.smem<array<i64: 128, 64>, f16, "K", "128B">', "!tc.tmem<array<i64: 128, 64>, f16>"
B, HALO = (f'!tc.smem<array<i64: {rows}, 64>, f16, "K", "128B">' for rows in (N // 2, 8))
D = f"!tc.tmem<array<i64: 128, {N}>, f32>"
GROUP = ", cta_group = 2 : i64"


def steps(d: str) -> list[str]:
    """A product of both CTAs, A in tensor memory."""
    return [
        f'"tc.mma"(%{d}, %ta, %sw, %{"true" if j else "false"}) {{a_slice = {j} : i64, b_slice = '
        f"{j} : i64, ashift = false{GROUP}}} : ({D}, {A_TMEM}, {B}, i1) -> ()"
        for j in range(4)
    ]


def rows_below() -> list[str]:
    """D0 = A B^T; D1 the same with the row below each row of A, of the halo below every 32nd."""
    mma = [
        f'"tc.cp"(%sx, %ta) {{slice = {j} : i64{GROUP}}} : ({A}, {A_TMEM}) -> ()' for j in range(3)
    ]
    mma.append(
        f'"tc.cp_rows"(%sx, %ta) {{shape = "128x256b", multicast = "", row = 0 : i64, byte = 96 : '
        f"i64, column = 24 : i64{GROUP}}} : ({A}, {A_TMEM}) -> ()"
    )
    mma += steps("d0")
    for j in range(4):
        mma += [
            f'"tc.shift"(%ta) {{slice = {j} : i64, quarter = {q} : i64{GROUP}}} : ({A_TMEM}) -> ()'
            for q in range(4)
        ]
        mma.append(
            f'"tc.refresh"(%sh, %ta) {{slice = {j} : i64, row = 4 : i64{GROUP}}} : '
            f"({HALO}, {A_TMEM}) -> ()"
        )
    return mma + steps("d1")


OUT = f"memref<256x{2 * N}xf32>"
ARGUMENTS = f"%x: memref<256x64xf16>, %w: memref<{N}x64xf16>, %h: memref<16x64xf16>, %out: {OUT}"
ATTRIBUTES = (
    "tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>, "
    "tc.block = array<i64: 192, 1, 1>"
)
LOADED = (("x", A, 128), ("w", B, N // 2), ("h", HALO, 8))
"""Name, tile and rows of what each CTA loads."""
SETUP = [
    tensor_map("mx", "x", (256, 64), "f16", (64, 128)),
    tensor_map("mw", "w", (N, 64), "f16", (64, N // 2)),
    tensor_map("mh", "h", (16, 64), "f16", (64, 8)),
    '%rank = "tc.cta_rank"() : () -> index',
    *(f"%r{name} = arith.muli %rank, %c{rows} : index" for name, _, rows in LOADED),
]


def stored() -> list[str]:
    """A sub-partition of both products."""
    lines = ["%m = arith.muli %me, %c32 : index", "%m0 = arith.addi %rx, %m : index",
             "%quarter = arith.addi %me, %c0 : index"]  # fmt: skip
    for i in range(2):
        lines += store(D, N, "%m0", f"%c{N * i}", "out", OUT, f"d{i}")
    return lines


def in_order() -> str:
    """The program before its operations are asynchronous."""
    lines = [
        f"func.func @f({ARGUMENTS}) attributes {{tc.kernel, {ATTRIBUTES}}} {{",
        *(f"%c{v} = arith.constant {v} : index" for v in (0, 1, 4, 8, N // 2, 32, 128)),
        "%true = arith.constant true",
        "%false = arith.constant false",
        *SETUP,
    ]
    for name, type_ in (("d0", D), ("d1", D), ("ta", A_TMEM)):
        lines.append(
            f'%{name} = "tc.tmem_tile"() {{operandSegmentSizes = array<i32: 0>}} : () -> {type_}'
        )
    for name, type_, rows in LOADED:
        lines += [
            f'%s{name} = "tc.smem_tile"() : () -> {type_}',
            f'"tc.tma_load"(%m{name}, %c0, %r{name}, %s{name}) {{row = 0 : i64, nbytes = '
            f"{128 * rows} : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>}} : "
            f"(!tc.tensor_map, index, index, {type_}) -> ()",
        ]
    return "\n".join(
        [*lines, *rows_below(), "scf.for %me = %c0 to %c4 step %c1 {", *stored(), "}", "return }"]
    )


def asynchronous() -> str:
    """The program with roles."""
    nbytes = 2 * sum(128 * rows for *_, rows in LOADED)
    loads = [
        f'"tc.mbarrier_expect_tx"(%full) {{leader, nbytes = {nbytes} : i64}} : (!tc.mbarrier) -> ()'
    ]
    for name, type_, rows in LOADED:
        loads += load(f"m{name}", ["c0", f"r{name}"], f"s{name}", type_, 128 * rows, more=GROUP)[1:]
    return Kernel(
        arguments=[ARGUMENTS],
        setup=[*SETUP, smem("sx", 0, A), smem("sw", 16384, B), smem("sh", 18432, HALO)],
        roles=[
            ("producer", [4], "one", loads),
            ("mma", [5], "one", [
                wait("full"), fence("tcgen05.after"), *rows_below(),
                f'"tc.commit"(%done) {{cta_mask = 3 : i64{GROUP}}} : (!tc.mbarrier) -> ()',
            ]),
            ("epilogue", [0, 1, 2, 3], "warp", [
                wait("done"), fence("tcgen05.after"), *stored(), fence("tcgen05.before"),
            ]),
        ],
        smem=19456,
        columns=128,
        arrivals={"full": 1, "done": 1},
        tiles=[tile("d0", 0, D), tile("d1", N, D), tile("ta", 64, A_TMEM)],
        attributes=ATTRIBUTES,
        pair=True,
    ).text()  # fmt: skip


def case() -> tuple[list[Any], Any]:
    """Inputs, and [256, 2 N]."""
    generator = np.random.default_rng(7)
    x, w, h = (generator.integers(-4, 5, (rows, 64)).astype(np.float16) for rows in (256, N, 16))
    below = np.roll(x, -1, axis=0)
    below[31:128:32], below[159::32] = h[4:8], h[12:]
    both = np.concatenate([x, below], axis=1).reshape(256, 2, 64).astype(np.float32)
    return [x, w, h], (both @ w.T.astype(np.float32)).reshape(256, 2 * N)


def test_copies_and_shifts_of_a_pair() -> None:
    check(asynchronous(), *case())


def test_the_same_in_order() -> None:
    inputs, expected = case()
    context = ir.Context()
    tc.load(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(in_order())
        spec = [OutputSpec(expected.shape, expected.dtype)]
        outcome = tile_level.run(module, "f", inputs, spec, RunOptions())
    assert not outcome.incomplete and not outcome.findings
    np.testing.assert_array_equal(outcome.outputs[0], expected)


def test_a_shift_of_one_cta_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A break of the lowering: ``.cta_group::1`` in a kernel of pairs."""
    monkeypatch.setattr(halo, "cta_group_of", lambda op: 1)
    with pytest.raises(MachineError, match="cta-group-mixed"):
        check(asynchronous(), *case(), orders=(None,))
