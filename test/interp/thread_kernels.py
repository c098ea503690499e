# ruff: noqa: E501 (lines of IR)
"""Small thread-level kernels as text, and running them, for the tests of the naive spelling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tcir import codegen
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp import OutputSpec, thread
from tcir.program.execution import run_kernel
from tcir.program.launch import Launch

THREADS = 64
Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
}


def kernel(
    body: str, inputs: Sequence[str], outputs: Sequence[str], *, smem: int = 0, blocks: str = ""
) -> str:
    """Thread t has its elements of the inputs in %a, %b, %c and stores %x, %y to the outputs.

    `inputs` and `outputs` are LLVM types of elements; `body` is in between; `blocks`, if given,
    stands between `body` and the stores and has to end in the block the stores go on in.
    """
    count = len(inputs) + len(outputs)
    arguments = ", ".join(f"%p{n}: !llvm.ptr<1>" for n in range(count))
    params = ", ".join(f'{{kind = "pointer", arg = {n} : i64}}' for n in range(count))
    lines = ["%tid = nvvm.read.ptx.sreg.tid.x : i32"]
    for n, (name, kind) in enumerate(zip("abc", inputs, strict=False)):
        lines += [
            f"%p{n}_ = llvm.getelementptr %p{n}[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {kind}",
            f"%{name} = llvm.load %p{n}_ : !llvm.ptr<1> -> {kind}",
        ]
    lines += [body, blocks]
    for n, (name, kind) in enumerate(zip("xyz", outputs, strict=False), len(inputs)):
        lines += [
            f"%p{n}_ = llvm.getelementptr %p{n}[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, {kind}",
            f"llvm.store %{name}, %p{n}_ : {kind}, !llvm.ptr<1>",
        ]
    text = "\n    ".join(lines)
    return f"""gpu.module @kernels {{
  llvm.mlir.global external @smem() {{addr_space = 3 : i32, alignment = 16 : i64}} : !llvm.array<0 x i8>
  llvm.func @f({arguments}) attributes {{nvvm.kernel, nvvm.reqntid = array<i32: {THREADS}, 1, 1>,
      tc.params = [{params}], tc.grid = array<i64: 1, 1, 1>, tc.smem_bytes = {smem} : i64}} {{
    {text}
    llvm.return
  }}
}}
"""


def run(text: str, inputs: list[Array], outputs: list[Any]) -> list[Array]:
    """Output of the spelled kernel, which must have no finding and no missing rule."""
    with ir.Context() as context, ir.Location.unknown():
        tc.load(context)
        module = ir.Module.parse(text)
        outcome = thread.run(
            module, "f", inputs, [OutputSpec((THREADS,), np.dtype(d)) for d in outputs]
        )
    assert outcome.level == "thread"
    assert outcome.incomplete == []
    assert outcome.findings == []
    return outcome.outputs


def through_llvm(text: str, inputs: list[Array], outputs: list[Any]) -> list[Array]:
    """Output of LLVM's PTX for the same kernel."""
    with ir.Context() as context, ir.Location.unknown():
        tc.load(context)
        module = ir.Module.parse(text)
        ptx = codegen.emit_ptx(codegen.translate(module))
        specs = [OutputSpec((THREADS,), np.dtype(d)) for d in outputs]
        outcome = run_kernel(ptx, Launch.from_module(module), inputs, specs)
    assert outcome.incomplete == []
    assert outcome.findings == []
    return outcome.outputs


def integers(kind: str, seed: int) -> Array:
    """All sizes, both signs, with the extreme values among them; never zero by chance."""
    dtype = DTYPES[kind]
    info = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    magnitudes = 2 ** random.integers(0, info.bits - 1, THREADS)
    values = (random.integers(1, 1 << 40, THREADS) % magnitudes + 1) * random.choice(
        [-1, 1], THREADS
    )
    values[:4] = info.max, info.min, -1, 1
    return values.astype(dtype)


def floats(kind: str, seed: int) -> Array:
    random = np.random.default_rng(seed)
    values = random.standard_normal(THREADS) * 2.0 ** random.integers(-12, 12, THREADS)
    values[:4] = 1.0, -0.0, np.inf, 3.0
    return values.astype(DTYPES[kind])
