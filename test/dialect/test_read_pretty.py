"""The short form is read back: every op's example, and programs after every pass of a pipeline."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import tcir
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.operation import all_ops
from tcir.dialect.pretty import pretty
from tcir.dialect.read_pretty import UnreadableError, read_pretty

from .shared import shared_context

ROOT = Path(__file__).resolve().parents[2]
assert tc  # imports every op
EXAMPLES = {op.OPERATION_NAME: inspect.cleandoc(op.example) for op in all_ops()}
PROGRAMS = [
    ("matmul", "gemm", ""),
    ("resnet50_conv2_3x3", "conv-shift-reuse", ""),
    ("matmul", "gemm{persistent=true}", ""),
    ("matmul", "gemm{cta-group=2}", ""),
    ("matmul", "gemm{store=tma}", ""),
    ("matmul", "gemm{cluster=2x1}", "sm_90a"),
    ("matmul", "matmul-warp", ""),
    ("resnet50_conv2_3x3", "conv-smem-offset", ""),
    ("resnet50_conv2_3x3", "conv-implicit-gemm", "sm_90a"),
    ("resnet50_conv2_3x3", "conv-shift-reuse{halo=refresh}", ""),
    ("conv_5x5_bf16", "conv-shift-reuse{tiling=packed}", ""),
    ("resnet50_residual", "conv-implicit-gemm", ""),
    ("attention_projections", "gemm", ""),
    ("mlp_bf16", "gemm", ""),
    ("nvfp4_gemm", "gemm", ""),
    ("nvfp4_gemv_7168x2048x4", "gemv-padded-n", ""),
]


def check(text: str, *, named: bool) -> None:
    """The module that comes back prints as the one that went in, in both forms."""
    context = shared_context()
    module = ir.Module.parse(text, context)
    short = pretty(module, named=named)
    again = ir.Module.parse(read_pretty(short), context)
    assert str(again) == str(module)
    assert pretty(again, named=named) == short


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("named", [False, True])
def test_the_example_of_every_op(name: str, named: bool) -> None:
    check(EXAMPLES[name], named=named)


@pytest.mark.parametrize(("example", "pipeline", "target"), PROGRAMS)
def test_programs_after_every_pass(example: str, pipeline: str, target: str) -> None:
    options = {"target": target} if target else {}
    kernel = tcir.compile(ROOT / "examples" / f"{example}.mlir", pipeline, **options)
    states = dict(kernel.ir)
    assert len(states) > 10
    for text in states.values():
        check(text, named=True)


WRONG = """\
module {
  func.func @f(%arg0: tensor<8xf32>) {
    %bar0 = tc.mbarrier_init arrivals=1 : mbarrier
    LINE
    return
  }
}
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tc.mbarrier_arrive %other", "expected a value before this line, got %other"),
        ("tc.mbarrier_expect_tx %bar0 oops", "expected NAME=VALUE, got 'oops'"),
    ],
)
def test_a_line_that_is_not_in_the_form(line: str, message: str) -> None:
    with pytest.raises(UnreadableError, match=message) as error:
        read_pretty(WRONG.replace("LINE", line))
    assert error.value.line == 4
