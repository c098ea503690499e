"""Block-scaled products whose K is cut anywhere: rows and scales that TMA cannot load as they are.

Scales in rows of under 16 bytes, K inside an instruction, more than 32 columns; every level, and
numpy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith

from .block_scaled_oracle import inputs_of, product
from .block_scaled_text import F4, F6A, F6B, F8A, F8B, UE8M0, BlockScaled
from .breaking import change_operand, run_broken

MX: dict[str, Any] = {"scale": UE8M0, "block": 32}
PADDED: dict[str, tuple[BlockScaled, str]] = {
    "rows of 12 scales": (BlockScaled(m=131, k=192, n=3, out="f16"), ""),
    "batch of vectors": (BlockScaled(m=7, k=320, batch=3, alpha="in"), ""),
    "batch of columns": (BlockScaled(m=7, k=64, n=2, batch=2), ""),
    "one column": (BlockScaled(m=9, k=192, n=1), ""),
    "K inside an instruction": (BlockScaled(m=5, k=96), ""),
    "the same, columns": (BlockScaled(m=129, k=288, n=2), ""),
    "the same, in parts": (BlockScaled(m=129, k=544, n=2), "schedule=split-k splits=2"),
    "mxf4": (BlockScaled(m=5, k=96, n=2, **MX), ""),
    "fp8": (BlockScaled(m=5, k=160, n=3, a=F8A, b=F8B, **MX), ""),
    "rows of 40 bytes": (BlockScaled(m=7, k=80, n=3), ""),
    "rows of 40 bytes, vectors": (BlockScaled(m=9, k=336, batch=2, out="bf16"), ""),
    "fp6, one scale a row": (BlockScaled(m=5, k=32, n=2, a=F6A, b=F6B, **MX), ""),
    "fp4 and fp8": (BlockScaled(m=5, k=192, a=F4, b=F8A, **MX), ""),
    "40 columns": (BlockScaled(m=5, k=512, n=40), "pad_n=48"),
}
SIMT = {
    "odd rows": BlockScaled(m=7, k=80, n=3),
    "one scale a row": BlockScaled(m=3, k=16, n=2),
    "fp6": BlockScaled(m=3, k=96, n=2, a=F6A, b=F8A, **MX),
    "batch of vectors": BlockScaled(m=7, k=48, batch=3),
}


def _held(case: BlockScaled, pipeline: str, orders: int = 1) -> tcir.Kernel:
    kernel = tcir.compile(case.linalg(), pipeline, validate=True, orders=orders)
    verdicts = {line.verdict for line in kernel.report.passes}
    assert verdicts == {"reference", "equal"}, str(kernel.report)
    assert not [f for line in kernel.report.passes for f in line.findings]
    inputs = inputs_of(case, seed=7)
    want = product(case, **inputs)
    out = np.full_like(want, 9)
    assert not kernel(*inputs.values(), out).findings
    assert out.tobytes() == want.tobytes() and want.any()
    return kernel


@pytest.mark.parametrize("name", PADDED)
def test_padded(name: str, orders: int) -> None:
    case, options = PADDED[name]
    _held(case, f"gemv-padded-n{{{options}}}", orders)


@pytest.mark.parametrize("name", SIMT)
def test_simt(name: str) -> None:
    _held(SIMT[name], "gemv-simt{rows=2 warps=1}")


@pytest.mark.parametrize(
    "case", [BlockScaled(m=70, k=96, n=40), BlockScaled(m=140, k=288, n=20),
             BlockScaled(m=20, k=80, n=136), BlockScaled(m=20, k=160, n=24, a=F4, b=F8A, **MX)],
    ids=str,
)  # fmt: skip
def test_gemm(case: BlockScaled) -> None:
    _held(case, "gemm")


def test_scales_behind_k_are_read() -> None:
    """NaN in the place of the zeros that `reorder-scales` promises: the seventh scale of six."""
    nan = change_operand("arith.select", 2, lambda old: arith.constant(old.type, 0x7F), 6)
    caught = run_broken(
        BlockScaled(m=5, k=96).linalg(),
        tcir.named_pipeline("gemv-padded-n"),
        "convert-to-simt",
        nan,
        orders=1,
    )
    assert caught, "nothing noticed the break"
    assert caught.at == "tile-gemv-padded-n", caught.text


@pytest.mark.parametrize(
    ("pipeline", "launches"),
    [("gemv-padded-n", 4), ("gemv-simt", 2)],
)
def test_a_private_function_called_twice(pipeline: str, launches: int) -> None:
    """Calls are inlined, each is a launch of its own; gemv-padded-n reorders scales of each A."""
    case = BlockScaled(m=40, k=256)
    layer = case.linalg().replace("func.func @f", "func.func private @layer")
    kinds = [kind for _, kind, *_ in case.operands()]
    a, sa, b, sb, out = [*kinds, case.result]
    call = f"func.call @layer(%A, %S, %b, %t, %i) : ({', '.join([*kinds, out])}) -> {out}"
    text = f"""{layer}
    func.func @f(%a: {a}, %s: {sa}, %b: {b}, %t: {sb}, %c: {a}, %u: {sa}) -> ({out}, {out}) {{
      %i = tensor.empty() : {out}
      %y = {call.replace("%A", "%a").replace("%S", "%s")}
      %z = {call.replace("%A", "%c").replace("%S", "%u")}
      return %y, %z : {out}, {out}
    }}"""
    kernel = tcir.compile(text, pipeline, validate=True)
    assert {line.verdict for line in kernel.report.passes} == {"reference", "equal"}
    assert len(kernel.launches.launches) == launches
    first = inputs_of(case)
    second = {**first, "a": first["a"][::-1].copy(), "sa": first["sa"][::-1].copy()}
    results = [np.full(40, 77, np.float32) for _ in range(2)]
    arrays = [first[n] for n in ("a", "sa", "b", "sb")] + [second[n] for n in ("a", "sa")]
    assert not kernel(*arrays, *results).findings
    for result, given in zip(results, (first, second)):
        assert result.tobytes() == product(case, **given).tobytes()
