"""Programs that fail because a pass was broken: the plugin that breaks it, and what is said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"

LINEAR = """\
#matrix = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
func.func @linear(%x: tensor<256x192xf16>, %w: tensor<192x256xf16>, %b: tensor<256xf32>)
    -> tensor<256x256xf16> {
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %h = tensor.empty() : tensor<256x256xf16>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %c = linalg.matmul ins(%x, %w : tensor<256x192xf16>, tensor<192x256xf16>)
      outs(%z : tensor<256x256xf32>) -> tensor<256x256xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #column, #matrix],
                       iterator_types = ["parallel", "parallel"]}
      ins(%c, %b : tensor<256x256xf32>, tensor<256xf32>) outs(%h : tensor<256x256xf16>) {
  ^bb0(%s: f32, %a: f32, %o: f16):
    %1 = arith.addf %s, %a : f32
    %2 = arith.mulf %1, %1 : f32
    %3 = arith.addf %2, %two : f32
    %4 = FUNCTION %3 : f32
    %5 = arith.truncf %4 : f32 to f16
    linalg.yield %5 : f16
  } -> tensor<256x256xf16>
  return %y : tensor<256x256xf16>
}
"""

AFTER = """\
from tcir._mlir import ir
from tcir.passes.{module} import {name}

def drop(op):
    if {where}:
        {act}
        return ir.WalkResult.INTERRUPT
    return ir.WalkResult.ADVANCE

def run(self, module, run={name}.run):
    run(self, module)
    module.operation.walk(drop)

{name}.run = run
"""
"""Erases or edits the first op that is so, behind a pass."""


def example(name: str) -> str:
    return (EXAMPLES / name).read_text()


@dataclass(frozen=True)
class Broken:
    """A program, the flags that compile it, the plugin, and how that fails."""

    program: str
    flags: tuple[str, ...]
    plugin: str
    failure: str


BROKEN = {
    "a constant of log": Broken(
        LINEAR.replace("FUNCTION", "math.log"),
        ("--pipeline=gemm",),
        "from tcir.passes.emit import functions\nfunctions.LN_2 = 0.7\n",
        "different at convert-tc-to-nvvm",
    ),
    "the last part of K left out": Broken(
        LINEAR.replace("FUNCTION", "math.exp").replace("192", "200"),
        ("--pipeline=gemm",),
        "from tcir.passes.gemm import dense\ndense.ceil_div = lambda a, b: a // b\n",
        "different at tile-gemm",
    ),
    "no fence after barriers": Broken(
        LINEAR.replace("FUNCTION", "math.sqrt"),
        ("--pipeline=gemm{n-tile=64}",),
        "from tcir.passes.pipelining import place_barriers\n"
        "place_barriers._Placer._publish_barriers = lambda self: None\n",
        "expected a CTA barrier",
    ),
    "a crash": Broken(
        LINEAR.replace("FUNCTION", "math.tanh"),
        ("--pipeline=gemm",),
        "import ctypes\nfrom tcir.passes.emit import functions\n"
        "functions.FUNCTIONS['math.tanh'] = lambda x: ctypes.string_at(0)\n",
        "ended by SIGSEGV at convert-tc-to-nvvm",
    ),
    "an exception": Broken(
        LINEAR.replace("FUNCTION", "math.sqrt"),
        ("--pipeline=gemm",),
        "from tcir.passes.pipelining import multi_buffer\n"
        "multi_buffer.choose_stages = lambda *a, **k: {}['stages']\n",
        "KeyError",
    ),
    "a shift dropped": Broken(
        example("resnet50_conv2_3x3.mlir"),
        ("--pipeline=conv-shift-reuse",),
        AFTER.format(
            module="conv.tile_conv_shift_reuse",
            name="TileConvShiftReuse",
            where='op.name == "tc.mma" and ir.BoolAttr(op.attributes["ashift"]).value',
            act='op.attributes["ashift"] = ir.BoolAttr.get(False)',
        ),
        "different at tile-conv-shift-reuse",
    ),
    "a commit dropped": Broken(
        LINEAR.replace("FUNCTION", "math.sqrt").replace("192", "1024"),
        ("--pipeline=gemm",),
        AFTER.format(
            module="pipelining.assign_roles",
            name="AssignRoles",
            where='op.name == "tc.commit"',
            act="op.erase()",
        ),
        "different: illegal use of the machine: deadlock at assign-roles",
    ),
    "a wait dropped": Broken(
        LINEAR.replace("FUNCTION", "math.sqrt").replace("192", "320"),
        ("--pipeline=gemm{stages=2}",),
        AFTER.format(
            module="pipelining.place_barriers",
            name="PlaceBarriers",
            where='op.name == "tc.mbarrier_wait"',
            act="op.erase()",
        ),
        "different: race at place-barriers",
    ),
    "scales of another type": Broken(
        example("nvfp4_linear.mlir"),
        ("--pipeline=gemm",),
        "from tcir.passes.nvvm import block_scale_descriptor as d\nd.SCALE_CODE['ue4m3'] = 1\n",
        "different at convert-tc-to-nvvm",
    ),
    "a matmul-warp tail": Broken(
        LINEAR.replace("FUNCTION", "math.sqrt").replace("192", "208"),
        ("--pipeline=matmul-warp",),
        "from tcir.passes.warp import tile_matmul_warp as t\nt.ceil_div = lambda a, b: a // b\n",
        "different at tile-matmul-warp",
    ),
}
