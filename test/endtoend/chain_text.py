"""Programs of several contractions."""

TWO_LAYERS = """#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
func.func @two(%a: tensor<40x32xbf16>, %b: tensor<32x48xbf16>, %bias: tensor<48xf32>,
    %c: tensor<48x24xbf16>, %start: tensor<40x24xf32>, %residual: tensor<40x24xf32>)
    -> tensor<40x24xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x48xf32>) -> tensor<40x48xf32>
  %x = linalg.matmul ins(%a, %b : tensor<40x32xbf16>, tensor<32x48xbf16>)
                     outs(%init : tensor<40x48xf32>) -> tensor<40x48xf32>
  %to = tensor.empty() : tensor<40x48xbf16>
  %h = linalg.generic {indexing_maps = [#id, #column, #id],
      iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : tensor<40x48xf32>, tensor<48xf32>) outs(%to : tensor<40x48xbf16>) {
  ^bb0(%s: f32, %q: f32, %o: bf16):
    %t = arith.addf %s, %q : f32
    %u = arith.maximumf %t, %zero : f32
    %n = arith.truncf %u : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<40x48xbf16>
  %y = linalg.matmul ins(%h, %c : tensor<40x48xbf16>, tensor<48x24xbf16>)
                     outs(%start : tensor<40x24xf32>) -> tensor<40x24xf32>
  %w = arith.addf %y, %residual : tensor<40x24xf32>
  return %w : tensor<40x24xf32>
}"""
"""Two layers: relu(A B + bias) C + start, and a residual."""

GATED = """
func.func @gated(%a: tensor<40x32xf16>, %gate: tensor<32x48xf16>, %up: tensor<32x48xf16>)
    -> tensor<40x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x48xf32>) -> tensor<40x48xf32>
  %x = linalg.matmul ins(%a, %gate : tensor<40x32xf16>, tensor<32x48xf16>)
                     outs(%init : tensor<40x48xf32>) -> tensor<40x48xf32>
  %y = linalg.matmul ins(%a, %up : tensor<40x32xf16>, tensor<32x48xf16>)
                     outs(%init : tensor<40x48xf32>) -> tensor<40x48xf32>
  %e = math.exp %x : tensor<40x48xf32>
  %w = arith.mulf %y, %e : tensor<40x48xf32>
  return %w : tensor<40x48xf32>
}"""
"""Two products with the same A, one scaled by a function of the other."""

TWO_PRODUCTS = """
func.func @two(%a: tensor<40x32xf16>, %b: tensor<32x48xf16>, %c: tensor<48x24xf16>)
    -> tensor<40x24xf32> {
  %h = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
    : (tensor<40x32xf16>, tensor<32x48xf16>) -> tensor<40x48xf16>
  %y = "tc.matmul"(%h, %c) {a_layout = "mk", b_layout = "kn"}
    : (tensor<40x48xf16>, tensor<48x24xf16>) -> tensor<40x24xf32>
  return %y : tensor<40x24xf32>
}"""
"""A B C, with A B in f16: one launch each."""

SMALL_PRODUCTS = """
func.func @two(%a: tensor<128x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf16>)
    -> tensor<128x16xf32> {
  %h = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
    : (tensor<128x16xf16>, tensor<16x16xf16>) -> tensor<128x16xf16>
  %y = "tc.matmul"(%h, %c) {a_layout = "mk", b_layout = "kn"}
    : (tensor<128x16xf16>, tensor<16x16xf16>) -> tensor<128x16xf32>
  return %y : tensor<128x16xf32>
}"""
"""Chains with short sums."""
