// A block-scaled product with one scale for 128 rows and 16 values of k.
//
//   tc-opt examples/mistakes/scale_per_128_rows.mlir --pipeline=gemm

#a = affine_map<(m, n, k) -> (m, k)>
#sa = affine_map<(m, n, k) -> (m floordiv 128, k floordiv 16)>
#b = affine_map<(m, n, k) -> (n, k)>
#sb = affine_map<(m, n, k) -> (n floordiv 128, k floordiv 16)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @gemm(%a: tensor<256x512xf4E2M1FN>, %sa: tensor<2x32xf8E4M3FN>,
    %b: tensor<128x512xf4E2M1FN>, %sb: tensor<1x32xf8E4M3FN>) -> tensor<256x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x128xf32>) -> tensor<256x128xf32>
  %c = linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #c],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %sa, %b, %sb : tensor<256x512xf4E2M1FN>, tensor<2x32xf8E4M3FN>,
        tensor<128x512xf4E2M1FN>, tensor<1x32xf8E4M3FN>)
      outs(%init : tensor<256x128xf32>) {
    ^bb0(%x: f4E2M1FN, %p: f8E4M3FN, %y: f4E2M1FN, %q: f8E4M3FN, %sum: f32):
      %x32 = arith.extf %x : f4E2M1FN to f32
      %p32 = arith.extf %p : f8E4M3FN to f32
      %y32 = arith.extf %y : f4E2M1FN to f32
      %q32 = arith.extf %q : f8E4M3FN to f32
      %xp = arith.mulf %x32, %p32 : f32
      %yq = arith.mulf %y32, %q32 : f32
      %product = arith.mulf %xp, %yq : f32
      %next = arith.addf %sum, %product : f32
      linalg.yield %next : f32
  } -> tensor<256x128xf32>
  return %c : tensor<256x128xf32>
}
