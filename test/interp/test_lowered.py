"""The programs that the tile passes make, executed after every pass against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec
from tcir.interp.tensor import run as execute_tensor
from tcir.interp.tile import run as execute_tile
from tcir.passes.conv.tile_conv_implicit_gemm import TileConvImplicitGemm
from tcir.passes.conv.tile_conv_shift_reuse import TileConvShiftReuse
from tcir.passes.gemm.tile_gemm import TileGemm
from tcir.passes.pipelining.assign_roles import AssignRoles
from tcir.passes.pipelining.multi_buffer import MultiBuffer
from tcir.passes.pipelining.place_barriers import PlaceBarriers
from tcir.passes.pipelining.plan_memory import PlanMemory
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.run_options import RunOptions

LOWERING = (MultiBuffer(stages=2), PlaceBarriers(), PlanMemory(), AssignRoles())


def tensor(shape: Any, element: str) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def program(op: str, x: Any, w: Any, out: Any) -> str:
    tx, tw, to = tensor(x, "f16"), tensor(w, "f16"), tensor(out, "f32")
    return f"""func.func @f(%x: {tx}, %w: {tw}) -> {to} {{
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : {to}
      %i = linalg.fill ins(%z : f32) outs(%e : {to}) -> {to}
      %y = linalg.{op} ins(%x, %w : {tx}, {tw}) outs(%i : {to}) -> {to}
      return %y : {to} }}"""


def integers(shape: Any, seed: int) -> Any:
    return np.random.default_rng(seed).choice([-3, -2, -1, 1, 2, 3, 4], shape).astype(np.float16)


def check_every_pass(text: str, passes: Any, inputs: list[Any], expected: Any, orders: int) -> None:
    context = ir.Context()
    with context, ir.Location.unknown():
        tc.load(context)
        module = ir.Module.parse(text)
        for each in passes:
            each.run(module)
            assert module.operation.verify()
            run(module, each, inputs, expected, orders)


def run(module: Any, after: Any, inputs: list[Any], expected: Any, orders: int) -> None:
    function = module.body.operations[0].operation
    spec = [OutputSpec(expected.shape, expected.dtype)]
    if "tc.kernel" not in function.attributes:
        outcome = execute_tensor(module, "f", inputs, spec)
        np.testing.assert_array_equal(outcome.outputs[0], expected)
        return
    for seed in [None, *range(orders if "tc.async" in function.attributes else 0)]:
        outcome = execute_tile(module, "f", inputs, spec, RunOptions(seed))
        assert not outcome.incomplete, (after.name, outcome.incomplete)
        assert not outcome.findings, (after.name, seed, [str(f) for f in outcome.findings])
        np.testing.assert_array_equal(outcome.outputs[0], expected, err_msg=f"{after.name} {seed}")


def convolution(x: Any, w: Any, stride: int, dilation: int) -> Any:
    r, s, _, k = w.shape
    n, h, width, _ = x.shape
    p, q = ((size - (taps - 1) * dilation - 1) // stride + 1 for size, taps in ((h, r), (width, s)))
    out = np.zeros((n, p, q, k))
    for i in range(r):
        for j in range(s):
            rows = slice(i * dilation, i * dilation + (p - 1) * stride + 1, stride)
            columns = slice(j * dilation, j * dilation + (q - 1) * stride + 1, stride)
            out += x[:, rows, columns].astype(float) @ w[i, j].astype(float)
    return out.astype(np.float32)


CONVS = [
    # n, h, w, c, k, r, s, filter, stride, dilation, tiling passes
    (1, 5, 34, 64, 32, 3, 3, "hwcf", 1, 1, "both"),
    (2, 5, 7, 24, 40, 1, 3, "fhwc", 1, 1, "both"),
    (1, 6, 9, 72, 144, 2, 2, "hwcf", 1, 1, "both"),
    (2, 9, 11, 16, 24, 3, 3, "fhwc", 2, 1, "implicit"),
    (1, 9, 9, 32, 16, 3, 3, "hwcf", 1, 2, "implicit"),
]


TILINGS = {"shift": TileConvShiftReuse(), "implicit": TileConvImplicitGemm()}


@pytest.mark.parametrize(
    ("case", "tiling"),
    [(case[:-1], t) for case in CONVS for t in TILINGS if case[-1] in (t, "both")],
    ids=lambda v: v if isinstance(v, str) else "x".join(map(str, v)),
)
def test_convolutions(case, tiling):
    n, h, width, c, k, r, s, filter, stride, dilation = case
    x, w = integers((n, h, width, c), 0), integers((r, s, c, k), 1)
    expected = convolution(x, w, stride, dilation)
    given = w if filter == "hwcf" else np.ascontiguousarray(w.transpose(3, 0, 1, 2))
    op = (
        f"conv_2d_nhwc_{filter} {{dilations = dense<{dilation}> : vector<2xi64>, "
        f"strides = dense<{stride}> : vector<2xi64>}}"
    )
    text = program(op, x.shape, given.shape, expected.shape)
    check_every_pass(text, [RaiseToTc(), TILINGS[tiling], *LOWERING], [x, given], expected, 3)


@pytest.mark.parametrize(("m", "n", "k", "batch"), [(130, 48, 80, 0), (64, 136, 200, 2)])
def test_matmuls(m, n, k, batch):
    lead = (batch,) if batch else ()
    a, b = integers((*lead, m, k), 0), integers((*lead, k, n), 1)
    expected = (a.astype(float) @ b.astype(float)).astype(np.float32)
    op = "batch_matmul" if batch else "matmul"
    text = program(op, a.shape, b.shape, expected.shape)
    check_every_pass(text, [RaiseToTc(), TileGemm(), *LOWERING], [a, b], expected, 3)
