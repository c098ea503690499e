// A plain matrix product, f16 in, f32 out, with tails in every dimension.
//
//   tc-opt examples/matmul.mlir --pipeline=gemm --validate-each --emit=ptx

func.func @matmul(%a: tensor<200x328xf16>, %b: tensor<328x136xf16>) -> tensor<200x136xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<200x136xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<200x136xf32>) -> tensor<200x136xf32>
  %out = linalg.matmul ins(%a, %b : tensor<200x328xf16>, tensor<328x136xf16>)
      outs(%init : tensor<200x136xf32>) -> tensor<200x136xf32>
  return %out : tensor<200x136xf32>
}
