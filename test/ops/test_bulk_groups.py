"""place-barriers orders stores through shared memory: a GEMM whose epilogue stores by TMA."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tcir import codegen
from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.kernel.verify import verify_kernel
from tcir.interp import OutputSpec
from tcir.interp import tile as tile_level
from tcir.passes.gemm.tile_gemm import TileGemm
from tcir.passes.nvvm.convert_tc_to_nvvm import ConvertTcToNvvm
from tcir.passes.nvvm.lower_to_llvm import LOWER_TO_LLVM
from tcir.passes.pipelining.assign_roles import AssignRoles
from tcir.passes.pipelining.multi_buffer import MultiBuffer
from tcir.passes.pipelining.place_barriers import PlaceBarriers
from tcir.passes.pipelining.plan_memory import PlanMemory
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passmanager.pipeline import Pipeline
from tcir.program.execution import run_kernel
from tcir.program.launch import Launch
from tcir.run_options import RunOptions

SOURCE = """func.func @f(%x: tensor<200x128xf16>, %w: tensor<128x64xf16>) -> tensor<200x64xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<200x64xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<200x64xf32>) -> tensor<200x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<200x128xf16>, tensor<128x64xf16>)
      outs(%i : tensor<200x64xf32>) -> tensor<200x64xf32>
  return %y : tensor<200x64xf32> }"""
SLOT = '!tc.smem<array<i64: 32, 32>, f32, "K", "128B">'
RING = f"!tc.ring<4 : i64, {SLOT}>"
D = "!tc.tmem<array<i64: 128, 64>, f32>"
MAP = """
    %map = "tc.make_tensor_map"(%arg2) {mode = "tiled", dims = array<i64: 64, 200>,
        strides = array<i64: 256>, box = array<i64: 32, 32>, element_strides = array<i64: 1, 1>,
        corners = array<i64>, swizzle = "128B"} : (memref<200x64xf32>) -> !tc.tensor_map
"""
EPILOGUE = f"""
    %tiles = "tc.smem_tile"() : () -> {RING}
    scf.for %q = %c0 to %c4 step %c1 {{
      %slot = "tc.slot"(%tiles, %q) : ({RING}, index) -> {SLOT}
      %down = arith.muli %q, %c32 : index
      %m = arith.addi ROW, %down : index
      scf.for %n = %c0 to %c64 step %c32 {{
        scf.for %i = %c0 to %c32 step %c16 {{
          %at = arith.addi %n, %i : index
          %v = "tc.tmem_ld"(ACC, %q, %at) : ({D}, index, index) -> vector<32x16xf32>
          "tc.store_shared"(%v, %slot, %c0, %i)
              : (vector<32x16xf32>, {SLOT}, index, index) -> ()
        }}
        "tc.tma_store"(%map, %n, %m, %slot) {{row = 0 : i64,
            operandSegmentSizes = array<i32: 1, 2, 1>}}
            : (!tc.tensor_map, index, index, {SLOT}) -> ()
      }}
    }}
    return
  }}
}}
"""


def by_tma(module: ir.Module) -> ir.Module:
    """The module with its epilogue replaced."""
    text = str(module)
    accumulator = re.search(r'(%\d+) = "tc.tmem_tile"', text)
    row = re.search(r"(%\d+) = arith.muli %block_id_x, %c128", text)
    assert accumulator and row
    start = text.rindex("    scf.for %arg", 0, text.rindex('"tc.tmem_ld"'))
    start = text.rindex("    scf.for %arg3", 0, start + 1)
    epilogue = EPILOGUE.replace("ACC", accumulator[1]).replace("ROW", row[1])
    first = text.index("    %block_id_x")
    return ir.Module.parse(text[:first] + MAP + text[first:start] + epilogue)


@pytest.mark.parametrize("drop", ["", "tc.fence", "tc.bulk_wait"])
def test_gemm_that_stores_by_tma(drop: str) -> None:
    generator = np.random.default_rng(0)
    x = generator.integers(-4, 5, (200, 128)).astype(np.float16)
    w = generator.integers(-4, 5, (128, 64)).astype(np.float16)
    expected = x.astype(np.float32) @ w.astype(np.float32)
    spec = [OutputSpec(expected.shape, expected.dtype)]
    context = ir.Context()
    tc.load(context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(SOURCE)
        RaiseToTc().run(module)
        TileGemm(n_tile=64).run(module)
        module = by_tma(module)
        for each in (None, MultiBuffer(stages=2), PlaceBarriers(), PlanMemory(), AssignRoles()):
            if each is not None:
                each.run(module)
            assert module.operation.verify()
            if drop and each is not None and isinstance(each, PlaceBarriers):
                break
            outcome = tile_level.run(module, "f", [x, w], spec, RunOptions(1))
            assert not outcome.incomplete and not outcome.findings, (each, outcome.findings)
            np.testing.assert_array_equal(outcome.outputs[0], expected)
        if drop:
            missing = _without(module, drop)
            outcome = tile_level.run(missing, "f", [x, w], spec, RunOptions(None))
            assert outcome.findings
            return
        assert not [m for op in module.body.operations for m in verify_kernel(op)]
        ConvertTcToNvvm().apply(module)
        launch = Launch.from_module(module)
        Pipeline(LOWER_TO_LLVM).run(module)
        ptx = codegen.emit_ptx(codegen.translate(module))
    for seed in (None, 1, 2):
        outcome = run_kernel(ptx, launch, [x, w], spec, RunOptions(seed))
        assert not outcome.incomplete and not outcome.findings
        np.testing.assert_array_equal(outcome.outputs[0], expected)


def _without(module: ir.Module, name: str) -> ir.Module:
    """The module without the ops `name` next to its stores."""
    lines = str(module).splitlines()
    kept = [
        line
        for line in lines
        if f'"{name}"' not in line or (name == "tc.fence" and "proxy.async" not in line)
    ]
    assert len(kept) < len(lines)
    return ir.Module.parse("\n".join(kept))
