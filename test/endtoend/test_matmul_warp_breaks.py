"""matmul-warp with one thing broken: some level says so, and it is the earliest that can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import tcir
from tcir.passmanager.pipeline import Pass

PROGRAM = """
func.func @product(%a: tensor<20x100xf16>, %b: tensor<100x20xf16>) -> tensor<20x20xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<20x20xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<20x20xf32>) -> tensor<20x20xf32>
  %c = linalg.matmul ins(%a, %b : tensor<20x100xf16>, tensor<100x20xf16>)
      outs(%init : tensor<20x20xf32>) -> tensor<20x20xf32>
  return %c : tensor<20x20xf32>
}
"""
OPTIONS = {"block_m": 32, "block_n": 32, "block_k": 16, "warps_m": 2, "stages": 3}


@dataclass(frozen=True)
class Break(Pass):
    """Does `change` to every op called `op`."""

    op: str
    change: Callable[[Any], None]
    name: ClassVar[str] = "break"

    def run(self, module: Any) -> None:
        found: list[Any] = []

        def visit(operation: Any) -> Any:
            from tcir._mlir import ir

            if operation.name == self.op:
                found.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        assert found
        for operation in found:
            self.change(operation)


def number(name: str, add: int) -> Callable[[Any], None]:
    def change(op: Any) -> None:
        from tcir._mlir import ir

        old = ir.IntegerAttr(op.attributes[name])
        op.attributes[name] = ir.IntegerAttr.get(old.type, old.value + add)

    return change


def text(name: str, value: str) -> Callable[[Any], None]:
    def change(op: Any) -> None:
        from tcir._mlir import ir

        op.attributes[name] = ir.StringAttr.get(value, op.context)

    return change


def erase(op: Any) -> None:
    op.erase()


def row_layout(op: Any) -> None:
    from tcir._mlir import ir

    op.attributes["layout"] = ir.Attribute.parse("#nvvm.mma_layout<row>", op.context)


def first_failure(after: str, broken: Break, orders: int = 1) -> Any:
    pipeline = tcir.named_pipeline("matmul-warp", **OPTIONS).insert(broken, after=after)
    kernel = tcir.compile(PROGRAM, pipeline, target="sm_90", validate=True, orders=orders)
    failure = kernel.report.first_failure()
    assert failure is not None, str(kernel.report)
    return failure


# Behind which pass, what, completion orders, and the pass whose verdict it is.
BREAKS: dict[str, tuple[str, Break, int, str]] = {
    # A copy under way is read.
    "wait for too few groups": (
        "double-buffer-fragments", Break("tc.cp_async_wait", number("pending", 1)), 3, "break"
    ),
    # Other warps' copies are read; only threads can see it.
    "no barrier between warps": (
        "plan-staging", Break("tc.cta_barrier", erase), 1, "convert-tc-to-nvvm"
    ),
    # The tile leaves the tensor.
    "loads without tails": (
        "tile-matmul-warp", Break("tc.cp_async", text("tails", "")), 1, "break"
    ),
    "stores without tails": (
        "tile-matmul-warp", Break("tc.store_fragment", text("tails", "outer")), 1, "break"
    ),
    # Nothing to wait for.
    "no commit of groups": ("pipeline-cp-async", Break("tc.cp_async_commit", erase), 3, "break"),
    "ldmatrix without its transposition of B": (
        "convert-tc-to-nvvm", Break("nvvm.ldmatrix", row_layout), 1, "break"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    BREAKS,
)
def test_a_break_is_seen(name: str) -> None:
    after, broken, orders, seen = BREAKS[name]
    failure = first_failure(after, broken, orders)
    assert failure.verdict == "different"
    assert failure.name == seen, str(failure)
