"""Options and shapes of the tilings, executed at every tile level and compared with numpy.

No level may report a hazard, not even a warning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec, executor_for
from tcir.passmanager.pipeline import named_pipeline
from tcir.program.programs import find_program
from tcir.run_options import RunOptions

from .linalg_programs import named

LAST_TILE_PASS = "assign-roles"


@dataclass(frozen=True)
class Conv:
    """A convolution without padding: x ``[n, h, w, c]``, filter as `filter` says."""

    x: tuple[int, int, int, int]
    taps: tuple[int, int]
    k: int
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    filter: str = "hwcf"

    @property
    def out(self) -> tuple[int, int, int, int]:
        p, q = (
            (self.x[1 + i] - (self.taps[i] - 1) * self.dilations[i] - 1) // self.strides[i] + 1
            for i in range(2)
        )
        return (self.x[0], p, q, self.k)

    @property
    def w(self) -> tuple[int, ...]:
        c = self.x[3]
        return (*self.taps, c, self.k) if self.filter == "hwcf" else (self.k, *self.taps, c)

    def text(self) -> str:
        shapes = ["x".join(map(str, s)) for s in (self.x, self.w, self.out)]
        attributes = (
            f"{{strides = dense<[{self.strides[0]}, {self.strides[1]}]> : tensor<2xi64>, "
            f"dilations = dense<[{self.dilations[0]}, {self.dilations[1]}]> : tensor<2xi64>}}"
        )
        return named(f"conv_2d_nhwc_{self.filter}", shapes, attributes)

    def expected(self, x: np.ndarray[Any, Any], w: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self.filter == "fhwc":
            w = w.transpose(1, 2, 3, 0)
        _, p, q, _ = self.out
        total = np.zeros(self.out)
        for r in range(self.taps[0]):
            for s in range(self.taps[1]):
                top, left = r * self.dilations[0], s * self.dilations[1]
                sh, sw = self.strides
                part = x[:, top : top + p * sh : sh, left : left + q * sw : sw][:, :p, :q]
                total += part.astype(np.float64) @ w[r, s].astype(np.float64)
        return total


def integers(shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 4, shape) * generator.choice([-1, 1], shape)
    return values.astype(np.float16)


def check(conv: Conv, pipeline: str, **options: Any) -> Any:
    """Runs every tile level; returns the module after assign-roles."""
    x, w = integers(conv.x, 1), integers(conv.w, 2)
    expected = conv.expected(x, w)
    context = ir.Context()
    tc.load(context)
    with context:
        module = ir.Module.parse(conv.text())
        for step in named_pipeline(pipeline, **options):
            step.apply(module)
            module.operation.verify()
            level = find_program(module).level
            for seed in (None, 1):
                outcome = executor_for(level)(
                    module,
                    "f",
                    [x, w],
                    [OutputSpec(conv.out, np.dtype(np.float32))],
                    RunOptions(seed),
                )
                where = f"after {step.name}, order {seed}"
                assert not outcome.incomplete, where
                assert not outcome.findings, f"{where}: {outcome.findings[0]}"
                np.testing.assert_array_equal(outcome.outputs[0], expected, where)
            if step.name == LAST_TILE_PASS:
                return module
    raise AssertionError("no assign-roles in the pipeline")


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_ring_sizes(stages: int) -> None:
    check(Conv((1, 4, 40, 72), (3, 3), 24), "conv-shift-reuse", stages=stages)


@pytest.mark.parametrize("n_tile", [48, 16, 96])
@pytest.mark.parametrize("filter_layout", ["hwcf", "fhwc"])
def test_n_tiles(n_tile: int, filter_layout: str) -> None:
    conv = Conv((1, 4, 20, 24), (2, 3), 72, filter=filter_layout)
    check(conv, "conv-shift-reuse", n_tile=n_tile)
    check(conv, "conv-implicit-gemm", n_tile=n_tile)


def test_widest_tile() -> None:
    check(Conv((1, 2, 35, 16), (1, 2), 256), "conv-shift-reuse", n_tile=256)


@pytest.mark.parametrize(
    ("strides", "dilations"),
    [((2, 2), (1, 1)), ((1, 3), (1, 1)), ((1, 1), (2, 3)), ((3, 2), (2, 1))],
)
def test_strides_and_dilations_by_im2col(
    strides: tuple[int, int], dilations: tuple[int, int]
) -> None:
    conv = Conv((2, 12, 15, 8), (3, 2), 16, strides, dilations)
    check(conv, "conv-implicit-gemm")


def test_widest_filter() -> None:
    """One valid lane per quarter."""
    check(Conv((1, 1, 34, 8), (1, 32), 8), "conv-shift-reuse", stages=1)


def test_filter_row_taps_shift_all_but_the_last() -> None:
    module = check(Conv((1, 4, 20, 24), (2, 3), 16), "conv-shift-reuse")
    flags: list[bool] = []

    def visit(op: Any) -> Any:
        if op.name == "tc.mma":
            flags.append(bool(ir.IntegerAttr(op.attributes["ashift"]).value))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    assert flags == [True, True, False] * 2  # two K slices of 16 channels
