// A multi-layer perceptron in bf16, as PyTorch's importer has it: y = gelu(x W1 + b1) W2 + b2. Two kernels; the first
// has bias, gelu and the rounding in its epilogue, the second its bias.
//
//   tc-opt examples/mlp_bf16.mlir --pipeline=gemm --validate-each --emit=ptx
#matrix = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
func.func @mlp(%x: tensor<136x64xbf16>, %w1: tensor<64x128xbf16>, %b1: tensor<128xf32>, %w2: tensor<128x96xbf16>,
               %b2: tensor<96xf32>) -> tensor<136x96xf32> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %root = arith.constant 0.70710678 : f32
  %e1 = tensor.empty() : tensor<136x128xf32>
  %z1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<136x128xf32>) -> tensor<136x128xf32>
  %c1 = linalg.matmul ins(%x, %w1 : tensor<136x64xbf16>, tensor<64x128xbf16>)
      outs(%z1 : tensor<136x128xf32>) -> tensor<136x128xf32>
  %s1 = linalg.generic {indexing_maps = [#matrix, #column, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%c1, %b1 : tensor<136x128xf32>, tensor<128xf32>) outs(%e1 : tensor<136x128xf32>) {
  ^bb0(%s: f32, %b: f32, %o: f32):
    %t = arith.addf %s, %b : f32
    linalg.yield %t : f32
  } -> tensor<136x128xf32>
  %g1 = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%s1 : tensor<136x128xf32>) outs(%e1 : tensor<136x128xf32>) {
  ^bb0(%s: f32, %o: f32):
    %u = arith.mulf %s, %root : f32
    %v = math.erf %u : f32
    %p = arith.addf %v, %one : f32
    %q = arith.mulf %p, %half : f32
    %t = arith.mulf %s, %q : f32
    linalg.yield %t : f32
  } -> tensor<136x128xf32>
  %eh = tensor.empty() : tensor<136x128xbf16>
  %h = linalg.generic {indexing_maps = [#matrix, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%g1 : tensor<136x128xf32>) outs(%eh : tensor<136x128xbf16>) {
  ^bb0(%s: f32, %o: bf16):
    %t = arith.truncf %s : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<136x128xbf16>
  %e2 = tensor.empty() : tensor<136x96xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<136x96xf32>) -> tensor<136x96xf32>
  %c2 = linalg.matmul ins(%h, %w2 : tensor<136x128xbf16>, tensor<128x96xbf16>)
      outs(%z2 : tensor<136x96xf32>) -> tensor<136x96xf32>
  %y = linalg.generic {indexing_maps = [#matrix, #column, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%c2, %b2 : tensor<136x96xf32>, tensor<96xf32>) outs(%e2 : tensor<136x96xf32>) {
  ^bb0(%s: f32, %b: f32, %o: f32):
    %t = arith.addf %s, %b : f32
    linalg.yield %t : f32
  } -> tensor<136x96xf32>
  return %y : tensor<136x96xf32>
}
