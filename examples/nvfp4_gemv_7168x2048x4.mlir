// Four matrix-vector products of 7168 x 2048, NVFP4: fp4 elements, a ue4m3 scale for every 16 along k.
//
//   tc-opt examples/nvfp4_gemv_7168x2048x4.mlir --pipeline=gemv-padded-n --emit=launches

#a = affine_map<(l, m, k) -> (l, m, k)>
#sa = affine_map<(l, m, k) -> (l, m, k floordiv 16)>
#b = affine_map<(l, m, k) -> (l, k)>
#sb = affine_map<(l, m, k) -> (l, k floordiv 16)>
#c = affine_map<(l, m, k) -> (l, m)>

func.func @gemv(%a: tensor<4x7168x2048xf4E2M1FN>, %sa: tensor<4x7168x128xf8E4M3FN>,
    %b: tensor<4x2048xf4E2M1FN>, %sb: tensor<4x128xf8E4M3FN>,
    %out: tensor<4x7168xf32>) -> tensor<4x7168xf32> {
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%out : tensor<4x7168xf32>) -> tensor<4x7168xf32>
  %c = linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #c],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %sa, %b, %sb : tensor<4x7168x2048xf4E2M1FN>, tensor<4x7168x128xf8E4M3FN>,
        tensor<4x2048xf4E2M1FN>, tensor<4x128xf8E4M3FN>)
      outs(%init : tensor<4x7168xf32>) {
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
  } -> tensor<4x7168xf32>
  return %c : tensor<4x7168xf32>
}
