"""Mistakes planted in the passes that make launches: `validate` finds each where it is.

Those in prepared launches, frozen weights and graphs are in
test/torch_models/test_launching_breaks.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from edited import edit
from endtoend.chain_text import TWO_LAYERS
from endtoend.test_frozen import TEXT
from endtoend.test_join_gates import program as swiglu
from endtoend.test_rotations import program as rotated
from endtoend.test_siblings import PLAIN, SCALED, program

import tcir

HEAD = """
#row = affine_map<(m, n) -> (m, n)>
#first = affine_map<(m, n) -> (m)>
#column = affine_map<(m, n) -> (n)>
"""
LAYER = """  %s{n} = linalg.matmul ins({x}, %w{n} : tensor<40x96xf16>, tensor<96x96xf16>)
      outs(%zeros : tensor<40x96xf32>) -> tensor<40x96xf32>
  %h{n} = linalg.generic {{indexing_maps = [#row, #column, #row],
      iterator_types = ["parallel", "parallel"]}}
      ins(%s{n}, %b{n} : tensor<40x96xf32>, tensor<96xf32>) outs(%f16 : tensor<40x96xf16>) {{
  ^bb0(%a: f32, %b: f32, %o: f16):
    %c = arith.addf %a, %b : f32
    %d = arith.maximumf %c, %zero : f32
    %e = arith.truncf %d : f32 to f16
    linalg.yield %e : f16
  }} -> tensor<40x96xf16>
  %m{n} = linalg.generic {{indexing_maps = [#row, #first],
      iterator_types = ["parallel", "reduction"]}}
      ins(%h{n} : tensor<40x96xf16>) outs(%least : tensor<40xf16>) {{
  ^bb0(%a: f16, %o: f16):
    %c = arith.maximumf %a, %o : f16
    linalg.yield %c : f16
  }} -> tensor<40xf16>
  %y{n} = linalg.generic {{indexing_maps = [#row, #first, #row],
      iterator_types = ["parallel", "parallel"]}}
      ins(%h{n}, %m{n} : tensor<40x96xf16>, tensor<40xf16>) outs(%f16 : tensor<40x96xf16>) {{
  ^bb0(%a: f16, %b: f16, %o: f16):
    %c = arith.subf %a, %b : f16
    linalg.yield %c : f16
  }} -> tensor<40x96xf16>
"""


def layers(count: int) -> str:
    """Layers of one form: the rows of a product with a bias, less the largest element of each."""
    given = [f"%w{n}: tensor<96x96xf16>, %b{n}: tensor<96xf32>" for n in range(count)]
    body = "".join(LAYER.format(n=n, x="%x" if n == 0 else f"%y{n - 1}") for n in range(count))
    return f"""{HEAD}
func.func @layers(%x: tensor<40x96xf16>, {", ".join(given)}) -> tensor<40x96xf16> {{
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0e4 : f16
  %f32 = tensor.empty() : tensor<40x96xf32>
  %f16 = tensor.empty() : tensor<40x96xf16>
  %one = tensor.empty() : tensor<40xf16>
  %zeros = linalg.fill ins(%zero : f32) outs(%f32 : tensor<40x96xf32>) -> tensor<40x96xf32>
  %least = linalg.fill ins(%low : f16) outs(%one : tensor<40xf16>) -> tensor<40xf16>
{body}  return %y{count - 1} : tensor<40x96xf16>
}}
"""


def _half(text: str, old: str, new: str) -> str:
    """A program whose second projection differs: `new` for its `old`."""
    first, mark, rest = text.partition("%q1 = ")
    assert old in rest
    return first + mark + rest.replace(old, new, 1)


HEADS, INT8 = program(PLAIN), program(SCALED)
LAYERS, TWO_OF_THEM = layers(3), layers(2)
OTHER_OP = _half(HEADS, "arith.addf", "arith.subf")
COLUMN = "%c = arith.extf %b : f16 to f32\n    %s = arith.addf %a, %c : f32"
APART = program(PLAIN, frozen=False)
ROWS = (
    re.sub(r"%b(\d) : (tensor<24x\d+xf32>), tensor<\d+xf16>", r"%r\1 : \2, tensor<24xf16>", HEADS)
    .replace("(m, n) -> (n)>", "(m, n) -> (m)>")
    .replace(
        "xf16>) -> (",
        "xf16>, " + ", ".join(f"%r{n}: tensor<24xf16>" for n in range(3)) + ") -> (",
        1,
    )
)
PLACED = HEADS.replace(
    COLUMN,
    """%i = linalg.index 1 : index
    %j = arith.index_cast %i : index to i32
    %c = arith.sitofp %j : i32 to f32
    %s = arith.addf %a, %c : f32""",
)
CONSTANTS = """
func.func @two(%x: tensor<8x3xbf16>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  %v = arith.constant dense<[[1.0, 2.0], [4.0, 5.0], [7.0, 8.0]]> : tensor<3x2xbf16>
  %w = arith.constant dense<[[3.0, -1.0], [2.0, 0.5], [9.0, 6.0]]> : tensor<3x2xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.matmul ins(%x, %v : tensor<8x3xbf16>, tensor<3x2xbf16>)
      outs(%i : tensor<8x2xf32>) -> tensor<8x2xf32>
  %z = linalg.matmul ins(%x, %w : tensor<8x3xbf16>, tensor<3x2xbf16>)
      outs(%i : tensor<8x2xf32>) -> tensor<8x2xf32>
  return %y, %z : tensor<8x2xf32>, tensor<8x2xf32>
}
"""
ROTATED, OTHER_ANGLES = rotated(), rotated(sin="other")
SWIGLU = swiglu(24, 40)
READ_TWICE = swiglu(24, 40, returned=", %z", results="{out}, {out}").replace(
    "  return", "  %z = math.absf %v : tensor<24x40xf16>\n  return"
)
TWO_TENSORS = swiglu(24, 40, arguments=", %z: tensor<{m}x{k}xf16>", other="%z")
FRONT = (
    "fold-empty,constants-to-arguments,join-siblings,fold-layouts,split-layers{vectors=true},"
    "fuse-epilogue,raise-to-tc,collapse-batch,swap-operands,reorder-scales,repack-gemm"
)
PASSES = (
    f"builtin.module({FRONT},split-launches,fold-constant-launches,fuse-operands,share-kernels)"
)
GATED = f"builtin.module({FRONT},split-launches,join-gates,fold-constant-launches,share-kernels)"
EXCHANGED = PASSES.replace("swap-operands", "swap-operands{swap=always}")
IN_PARTS = f"builtin.module({FRONT},split-k{{splits=2}},split-launches,share-kernels)"

ADJACENT = "tcir.passes.module.rewrites.adjacent"
GATES = "tcir.passes.module.join_gates"
JOIN, JOINED = "tcir.passes.module.join_siblings", "tcir.passes.module.rewrites.joined"
SPLIT, FUSE = "tcir.passes.module.split_layers", "tcir.passes.module.fuse_epilogue"
SHARE, OPERANDS = "tcir.passes.module.share_kernels", "tcir.passes.gemm.fuse_operands"
SPACES = "tcir.passes.module.plan_workspaces"
CONSTANT = "tcir.passes.module.fold_constant_launches"
LAUNCHES, PARTS = "tcir.passes.module.split_launches", "tcir.passes.emit.parts"
RAISE, SWAP = "tcir.passes.raising.raise_to_tc", "tcir.passes.gemm.swap_operands"


@dataclass(frozen=True)
class Break:
    """A mistake: `old` at `place` (see `edited.edit`) becomes `new`; found after the pass `at`, or
    as an error that says `at`."""

    what: str
    text: str
    place: str
    old: str
    new: str
    at: str
    passes: str = PASSES


BREAKS = [
    # packing of siblings
    Break("weights are packed in another order", HEADS, f"{JOINED}:Joint._concatenated",
          "dim, values)", "dim, values[::-1])", "join-siblings"),
    Break("scales are packed in another order than weights", INT8, f"{JOINED}:Joint._concatenated",
          "dim, values)", "dim, values[:: 1 if values[0].type.shape[-1] > 1 else -1])",
          "join-siblings"),
    Break("a view begins one column early", HEADS, f"{JOIN}:_columns",
          "end - kind.shape[COLUMNS]", "end - kind.shape[COLUMNS] - (end > 64)", "join-siblings"),
    Break("every view begins at the first column", HEADS, f"{JOIN}:_columns",
          "end - kind.shape[COLUMNS]", "0", "join-siblings"),
    Break("two views are exchanged", HEADS, f"{JOIN}:_join",
          "zip(values, parts, strict=True)",
          "zip([values[0], values[2], values[1]], parts, strict=True)", "join-siblings"),
    Break("epilogues of different ops are joined", OTHER_OP, f"{JOINED}:_same",
          "_properties(mine.operation) != _properties(theirs.operation)", "False",
          "join-siblings"),
    Break("columns are counted through joined products", PLACED, f"{JOINED}:_same",
          "or mine.operation.name in INDEXED", "", "join-siblings"),
    Break("other tensors that epilogues read are the first one's", ROWS, f"{JOINED}:Joint._operand",
          "any(each != values[0] for each in values)", "False", "join-siblings"),
    Break("rotations read the columns of other parts", ROTATED, f"{ADJACENT}:_columns",
          "run[0].owner, \"static", "run[-1].owner, \"static", "join-siblings"),
    Break("queries and keys are exchanged", ROTATED, f"{ADJACENT}:_joined",
          "offsets = [start if", "offsets = [made.type.shape[dim] - shape[dim] - start if",
          "join-siblings"),
    Break("keys are rotated by the angles of queries", OTHER_ANGLES, f"{JOINED}:Joint._operand",
          "any(each != values[0] for each in values)", "False", "join-siblings"),
    Break("both halves are the first one", ROTATED, f"{JOINED}:Joint._sliced",
          "offsets, list(kind.shape)", "[0] * len(offsets), list(kind.shape)", "join-siblings"),
    # gate and value of one product
    Break("gates and values are exchanged", SWIGLU, f"{GATES}:_bodies",
          "block.arguments[1], mapping", "block.arguments[0], mapping", "join-gates", GATED),
    Break("matrices alternate in another order", SWIGLU, f"{GATES}:_join",
          "for each in (gate, value)]", "for each in (value, gate)]", "join-gates", GATED),
    Break("single columns alternate", SWIGLU, f"{GATES}:_gated",
          "i64(block)", "i64(1)", "join-gates", GATED),
    Break("the matrix is no larger than the value", SWIGLU, f"{GATES}:_join",
          "tensor_bytes(both)", "tensor_bytes(both) // 2", "join-gates", GATED),
    Break("the value's epilogue is dropped", SWIGLU, f"{GATES}:_body",
          "product.after is None", "product.after is None or known is None", "join-gates", GATED),
    Break("a value that another launch reads is not stored", READ_TWICE, f"{GATES}:_apart",
          "> 2:", "> 9:", "join-gates", GATED),
    Break("products of two tensors become one", TWO_TENSORS, f"{GATES}:_apart",
          "or gate.number(gate.op.a) != value.number(value.op.a)", "", "join-gates", GATED),
    # launches
    Break("two launches are exchanged", LAYERS, f"{SPLIT}:_Layers.split",
          "enumerate(launches)", "enumerate([launches[1], launches[0], *launches[2:]])",
          "split-layers"),
    Break("launches run backwards", LAYERS, f"{SPLIT}:_Layers.split",
          "enumerate(launches)", "enumerate(launches[::-1])", "split-layers"),
    Break("inputs of a launch are exchanged", LAYERS, f"{SPLIT}:_Layers._outline",
          "(*launch.inputs, *results)]", "(*launch.inputs[::-1], *results)]", "split-layers"),
    Break("workspaces have one number", LAYERS, f"{SPLIT}:_Layers._numbers",
          "= len(numbers)\n            workspaces",
          "= 9\n            workspaces", "split-layers"),
    Break("a launch reads the input of the program", LAYERS, f"{SPLIT}:_Layers._outline",
          "new.attributes[\"tc.args\"] = i64s(args)",
          "new.attributes[\"tc.args\"] = i64s([0 if n > 7 and n != args[-1] and order == 3 else n"
          " for n in args])", "split-layers"),
    Break("a workspace is too small", LAYERS, f"{SPLIT}:_Layers._numbers",
          "tensor_bytes(each.type)", "tensor_bytes(each.type) // 2", "split-layers"),
    Break("equal launches have the buffers of the first", LAYERS, f"{SHARE}:_repeat",
          "integers(function, \"tc.args\")", "integers(first, \"tc.args\")", "share-kernels"),
    Break("equal launches have the order of the first", LAYERS, f"{SHARE}:_repeat",
          "launch_order(function) or 0", "launch_order(first) or 0", "share-kernels"),
    Break("different launches are one kernel", APART, f"{SHARE}:_computation",
          "{text}", "{function.type.results[0].element_type}", "share-kernels"),
    Break("parts of K are summed before the product", LAYERS, f"{LAUNCHES}:_split",
          "return launches", "return launches[::-1]", "split-launches", IN_PARTS),
    Break("a part of K is dropped", LAYERS, f"{PARTS}:product_in_parts",
          "i64(each * k)", "i64(each * k - 32)", "split-k", IN_PARTS),
    # operands computed in a product's kernel
    Break("weights and scales are exchanged", INT8, f"{OPERANDS}:_together",
          "*left, *mine, *results", "*left, *mine[::-1], *results", "fuse-operands"),
    Break("workspaces keep their old numbers", INT8, f"{OPERANDS}:_Launches.renumber",
          "new.get(n, n)", "n", "fuse-operands"),
    Break("launches after a fusion are exchanged", INT8, f"{OPERANDS}:_Launches.renumber",
          "number_launches(self.functions)", "number_launches(self.functions[::-1])",
          "fuse-operands"),
    # fusion
    Break("the first bias is that of all columns", HEADS, f"{FUSE}:_map",
          "isinstance(d, int)", "isinstance(d, int) and len(dims) > 1", "fuse-epilogue"),
    Break("the accumulator's start is added twice", TWO_LAYERS, f"{FUSE}:_Body.start_from_zeros",
          "if not self.starts:", "if True:", "fuse-epilogue"),
    Break("the accumulator's start is dropped", TWO_LAYERS, f"{FUSE}:_Body.build",
          "total = add(first, total)", "pass", "fuse-epilogue"),
    Break("a residual is read by columns", TWO_LAYERS, f"{FUSE}:_map",
          "ir.AffineDimExpr.get(d)", "ir.AffineDimExpr.get(rank - 1)", "fuse-epilogue"),
    Break("a constant is read as one", LAYERS, f"{FUSE}:_Body._constant",
          "arith.ConstantOp(kind, attribute)",
          "arith.ConstantOp(kind, ir.FloatAttr.get(kind, 1.0))", "fuse-epilogue"),
    Break("the second matrix is read by rows", LAYERS, f"{RAISE}:_matmul",
          "in (a_layout, b_layout)]", "in (a_layout, b_layout[::-1])]", "raise-to-tc"),
    Break("factors keep their layouts when exchanged", APART, f"{SWAP}:_swap",
          "ir.StringAttr.get(\"nm\")", "ir.StringAttr.get(\"mn\")", "swap-operands", EXCHANGED),
    # constants and frozen factors
    Break("two constants are exchanged", CONSTANTS, f"{CONSTANT}:_Buffers.renumber",
          "[self.constants[n] for n in kept]", "[self.constants[n] for n in kept[::-1]]",
          "fold-constant-launches"),
    Break("a constant's launch is executed for another one", CONSTANTS,
          f"{CONSTANT}:_Buffers.renumber", "*kept, *self.results", "*self.results, *kept",
          "fold-constant-launches"),
    Break("workspaces that are in use share memory", TWO_OF_THEM, f"{SPACES}:plan",
          "[n for n in offsets if lives[n][0] <= end and begin <= lives[n][1]]", "[]",
          "plan-workspaces", "layers"),
    Break("a workspace is free before its last reader", TWO_OF_THEM, f"{SPACES}:_lifetime",
          "found[0], found[-1]", "found[-1], found[-1]", "plan-workspaces", "layers"),
    Break("a norm's factor is applied twice", TEXT, f"{FUSE}:_Body._structured",
          "self._clone(each.operation, operands)",
          "self._clone(each.operation, operands if each.operation.name != 'arith.mulf' else"
          " [self._clone(each.operation, operands), operands[1]])", "fuse-epilogue"),
]  # fmt: skip


def found(text: str, passes: str) -> str:
    """The pass after which `validate` finds something, or the error's words; "" for nothing."""
    try:
        report = tcir.validate(text, passes, target="sm_90a")
    except tcir.Error as error:
        return f"error: {error}"
    return next((each.name for each in report.passes if each.index and not each.held), "")


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (text, PASSES)
        for text in (HEADS, INT8, LAYERS, OTHER_OP, PLACED, ROWS, APART, TEXT, CONSTANTS)
    ]
    + [(text, PASSES) for text in (ROTATED, OTHER_ANGLES)]
    + [(TWO_LAYERS, PASSES), (LAYERS, IN_PARTS), (APART, EXCHANGED)]
    + [(text, GATED) for text in (SWIGLU, READ_TWICE, TWO_TENSORS)],
)
def test_nothing_is_found_without_a_mistake(text: str, passes: str) -> None:
    assert not found(text, passes)


@pytest.mark.parametrize("planted", BREAKS, ids=[each.what for each in BREAKS])
def test_a_mistake_is_found_where_it_is(planted: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        edit(patch, planted.place, planted.old, planted.new)
        assert planted.at in found(planted.text, planted.passes)
