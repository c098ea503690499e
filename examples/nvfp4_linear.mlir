// A linear layer, NVFP4 to NVFP4: y = quantise(relu(ga gb x Wᵀ + bias)), one kernel.
//
//   tc-opt examples/nvfp4_linear.mlir --pipeline=gemm --validate-each --emit=ptx
//
// %norm is the reciprocal of the global scale of y. The scales of y are in the blocks of 128 x 4 that the next layer
// reads; those of x and W come row-major, and kernels of their own reorder them.

#a = affine_map<(m, n, k) -> (m, k)>
#sa = affine_map<(m, n, k) -> (m, k floordiv 16)>
#b = affine_map<(m, n, k) -> (n, k)>
#sb = affine_map<(m, n, k) -> (n, k floordiv 16)>
#g = affine_map<(m, n, k) -> ()>
#c = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

func.func @linear(%a: tensor<136x512xf4E2M1FN>, %sa: tensor<136x32xf8E4M3FN>,
    %b: tensor<192x512xf4E2M1FN>, %sb: tensor<192x32xf8E4M3FN>,
    %ga: tensor<f32>, %gb: tensor<f32>, %bias: tensor<192xf32>, %norm: tensor<f32>)
    -> (tensor<136x192xf4E2M1FN>, tensor<2x3x512xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<136x192xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<136x192xf32>) -> tensor<136x192xf32>
  %c = linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #g, #g, #c],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %sa, %b, %sb, %ga, %gb : tensor<136x512xf4E2M1FN>, tensor<136x32xf8E4M3FN>,
        tensor<192x512xf4E2M1FN>, tensor<192x32xf8E4M3FN>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<136x192xf32>) {
    ^bb0(%x: f4E2M1FN, %p: f8E4M3FN, %y: f4E2M1FN, %q: f8E4M3FN, %u: f32, %v: f32, %sum: f32):
      %x32 = arith.extf %x : f4E2M1FN to f32
      %p32 = arith.extf %p : f8E4M3FN to f32
      %y32 = arith.extf %y : f4E2M1FN to f32
      %q32 = arith.extf %q : f8E4M3FN to f32
      %xp = arith.mulf %x32, %p32 : f32
      %yq = arith.mulf %y32, %q32 : f32
      %product = arith.mulf %xp, %yq : f32
      %alpha = arith.mulf %u, %v : f32
      %scaled = arith.mulf %product, %alpha : f32
      %next = arith.addf %sum, %scaled : f32
      linalg.yield %next : f32
  } -> tensor<136x192xf32>
  %h = linalg.generic {indexing_maps = [#all, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%c, %bias : tensor<136x192xf32>, tensor<192xf32>) outs(%empty : tensor<136x192xf32>) {
    ^bb0(%s: f32, %t: f32, %o: f32):
      %biased = arith.addf %s, %t : f32
      %relu = arith.maximumf %biased, %zero : f32
      linalg.yield %relu : f32
  } -> tensor<136x192xf32>
  %codes, %scales = "tc.quantise_blocks"(%h, %norm) {operandSegmentSizes = array<i32: 1, 1>}
      : (tensor<136x192xf32>, tensor<f32>)
      -> (tensor<136x192xf4E2M1FN>, tensor<2x3x512xf8E4M3FN>)
  return %codes, %scales : tensor<136x192xf4E2M1FN>, tensor<2x3x512xf8E4M3FN>
}
