// An NVFP4 linear layer: fp4 elements, a ue4m3 scale for every 16 along k, a global scale per tensor.
//
//   tc-opt examples/nvfp4_gemm.mlir --pipeline='gemm{n-tile=192}' --validate-each --emit=ptx

#a = affine_map<(m, n, k) -> (m, k)>
#sa = affine_map<(m, n, k) -> (m, k floordiv 16)>
#b = affine_map<(m, n, k) -> (n, k)>
#sb = affine_map<(m, n, k) -> (n, k floordiv 16)>
#g = affine_map<(m, n, k) -> ()>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @linear(%a: tensor<128x512xf4E2M1FN>, %sa: tensor<128x32xf8E4M3FN>,
    %b: tensor<384x512xf4E2M1FN>, %sb: tensor<384x32xf8E4M3FN>,
    %ga: tensor<f32>, %gb: tensor<f32>) -> tensor<128x384xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x384xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x384xf32>) -> tensor<128x384xf32>
  %c = linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #g, #g, #c],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %sa, %b, %sb, %ga, %gb : tensor<128x512xf4E2M1FN>, tensor<128x32xf8E4M3FN>,
        tensor<384x512xf4E2M1FN>, tensor<384x32xf8E4M3FN>, tensor<f32>, tensor<f32>)
      outs(%init : tensor<128x384xf32>) {
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
  } -> tensor<128x384xf32>
  %out = arith.truncf %c : tensor<128x384xf32> to tensor<128x384xbf16>
  return %out : tensor<128x384xbf16>
}
