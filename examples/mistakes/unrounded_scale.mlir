// Block quantisation to NVFP4 whose elements are divided by the scale before it is rounded to ue4m3. The next product
// multiplies by the scale as stored, so every element of a block is off by the same factor.
//
//   tc-opt examples/mistakes/unrounded_scale.mlir --pipeline=gemm

#x = affine_map<(m, b, i) -> (m, b, i)>
#block = affine_map<(m, b, i) -> (m, b)>
#s = affine_map<(m, b) -> (m, b)>

func.func @quantise(%x: tensor<128x8x16xf32>) -> (tensor<128x8x16xf4E2M1FN>, tensor<128x8xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %six = arith.constant 6.0 : f32
  %empty = tensor.empty() : tensor<128x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x8xf32>) -> tensor<128x8xf32>
  %amax = linalg.generic {indexing_maps = [#x, #block], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<128x8x16xf32>) outs(%init : tensor<128x8xf32>) {
    ^bb0(%in: f32, %most: f32):
      %magnitude = math.absf %in : f32
      %next = arith.maximumf %magnitude, %most : f32
      linalg.yield %next : f32
  } -> tensor<128x8xf32>
  %scale = linalg.generic {indexing_maps = [#s, #s], iterator_types = ["parallel", "parallel"]}
      ins(%amax : tensor<128x8xf32>) outs(%empty : tensor<128x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %quotient = arith.divf %in, %six : f32
      linalg.yield %quotient : f32
  } -> tensor<128x8xf32>
  %stored = arith.truncf %scale : tensor<128x8xf32> to tensor<128x8xf8E4M3FN>
  %codes = tensor.empty() : tensor<128x8x16xf4E2M1FN>
  %q = linalg.generic {indexing_maps = [#x, #block, #x], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %scale : tensor<128x8x16xf32>, tensor<128x8xf32>) outs(%codes : tensor<128x8x16xf4E2M1FN>) {
    ^bb0(%in: f32, %by: f32, %out: f4E2M1FN):
      %quotient = arith.divf %in, %by : f32
      %code = arith.truncf %quotient : f32 to f4E2M1FN
      linalg.yield %code : f4E2M1FN
  } -> tensor<128x8x16xf4E2M1FN>
  return %q, %stored : tensor<128x8x16xf4E2M1FN>, tensor<128x8xf8E4M3FN>
}
