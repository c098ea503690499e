"""Small programs on tensors, one for each product, and what may follow it."""

from __future__ import annotations

DENSE = """
func.func @f(%a: tensor<300x136xf16>, %b: tensor<136x64xf16>) -> tensor<300x64xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<300x136xf16>, tensor<136x64xf16>) -> tensor<300x64xf32>
  return %c : tensor<300x64xf32>
}"""
EXCHANGED = """
func.func @f(%a: tensor<64x136xf16>, %b: tensor<300x136xf16>) -> tensor<300x64xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk", out_layout = "nm"}
      : (tensor<64x136xf16>, tensor<300x136xf16>) -> tensor<300x64xf32>
  return %c : tensor<300x64xf32>
}"""
GATED = """
func.func @f(%a: tensor<300x136xf16>, %b: tensor<136x64xf16>) -> tensor<300x32xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<300x136xf16>, tensor<136x64xf16>) -> tensor<300x64xf32>
  %g = "tc.epilogue"(%c) ({
  ^bb0(%s: f32, %t: f32):
    %m = arith.mulf %s, %t : f32
    "tc.yield"(%m) : (f32) -> ()
  }) : (tensor<300x64xf32>) -> tensor<300x32xf32>
  return %g : tensor<300x32xf32>
}"""
GATED_BLOCKS = GATED.replace("}) : (tensor", "}) {gate_block = 8 : i64} : (tensor")
QUANTISED = """
func.func @f(%a: tensor<40x16xf16>, %b: tensor<64x16xf16>)
    -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"}
      : (tensor<40x16xf16>, tensor<64x16xf16>) -> tensor<40x64xf32>
  %q:2 = "tc.quantise_blocks"(%c) {operandSegmentSizes = array<i32: 1, 0>}
      : (tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return %q#0, %q#1 : tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>
}"""
SCALED = """
func.func @f(%a: tensor<200x512xf4E2M1FN>, %sa: tensor<2x8x512xf8E4M3FN>,
             %b: tensor<64x512xf4E2M1FN>, %sb: tensor<1x8x512xf8E4M3FN>) -> tensor<200x64xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<200x512xf4E2M1FN>, tensor<2x8x512xf8E4M3FN>, tensor<64x512xf4E2M1FN>,
         tensor<1x8x512xf8E4M3FN>) -> tensor<200x64xf32>
  return %c : tensor<200x64xf32>
}"""
VECTOR = """
func.func @f(%a: tensor<200x1280xf4E2M1FN>, %sa: tensor<2x20x512xf8E4M3FN>,
             %b: tensor<1280xf4E2M1FN>, %sb: tensor<80xf8E4M3FN>) -> tensor<200xf16> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64,
      a_scale_layout = "blocked_128x4", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<200x1280xf4E2M1FN>, tensor<2x20x512xf8E4M3FN>, tensor<1280xf4E2M1FN>,
         tensor<80xf8E4M3FN>) -> tensor<200xf16>
  return %c : tensor<200xf16>
}"""
GROUPED = """
func.func @f(%a: tensor<200x128xf16>, %b: tensor<3x128x64xf16>, %sizes: tensor<3xi32>)
    -> tensor<200x64xf32> {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"}
      : (tensor<200x128xf16>, tensor<3x128x64xf16>, tensor<3xi32>) -> tensor<200x64xf32>
  return %c : tensor<200x64xf32>
}"""
GROUPED_QUANTISED = """
func.func @f(%a: tensor<40x16xf16>, %b: tensor<3x64x16xf16>, %sizes: tensor<3xi32>)
    -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "nk"}
      : (tensor<40x16xf16>, tensor<3x64x16xf16>, tensor<3xi32>) -> tensor<40x64xf32>
  %q:2 = "tc.quantise_blocks"(%c) {operandSegmentSizes = array<i32: 1, 0>}
      : (tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return %q#0, %q#1 : tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>
}"""

GROUPED_BLOCKS = GROUPED.replace("tensor<200x64xf32> {\n", "tensor<200x32xf32> {\n").replace(
    "  return %c : tensor<200x64xf32>",
    """  %g = "tc.epilogue"(%c) ({
  ^bb0(%s: f32, %t: f32):
    %m = arith.mulf %s, %t : f32
    "tc.yield"(%m) : (f32) -> ()
  }) {gate_block = 8 : i64} : (tensor<200x64xf32>) -> tensor<200x32xf32>
  return %g : tensor<200x32xf32>""",
)


def conv(out: str = "2x8x8x64xf32", attributes: str = "", after: str = "", result: str = "") -> str:
    """A 3x3 convolution of 64 channels; `after`: what makes the `result` of ``%y``."""
    kind = f"tensor<{out}>"
    return f"""
func.func @f(%x: tensor<2x8x8x64xf16>, %w: tensor<3x3x64x64xf16>) -> {result or kind} {{
  %y = "tc.conv2d"(%x, %w) {{strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"{attributes}}}
      : (tensor<2x8x8x64xf16>, tensor<3x3x64x64xf16>) -> {kind}
  {after or f"return %y : {kind}"}
}}"""


CONV = conv()
CONV_PARTS = conv("3x2x8x8x64xf32", ", k_part = 192 : i64")
CONV_QUANTISED = conv(
    after='%q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : '
    "(tensor<2x8x8x64xf32>) -> (tensor<2x8x8x64xf4E2M1FN>, tensor<2x8x1x1x512xf8E4M3FN>)\n"
    "  return %q#0, %q#1 : tensor<2x8x8x64xf4E2M1FN>, tensor<2x8x1x1x512xf8E4M3FN>",
    result="(tensor<2x8x8x64xf4E2M1FN>, tensor<2x8x1x1x512xf8E4M3FN>)",
)
CONV_GROUPS = """
func.func @f(%x: tensor<1x12x12x64xf16>, %w: tensor<3x3x32x64xf16>) -> tensor<1x10x10x64xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 0, 0, 0, 0>, filter = "hwcf", groups = 2 : i64}
      : (tensor<1x12x12x64xf16>, tensor<3x3x32x64xf16>) -> tensor<1x10x10x64xf32>
  return %y : tensor<1x10x10x64xf32>
}"""
