// 2048 x 2048 x 256 in tf32, A M-major (stored [K, M]), B K-major (stored [N, K]): tiles of
// 128 x 128 x 16, four warps, two stages. examples/warp_matmul.py runs a smaller one.
//
//   tc-opt examples/tf32_matmul.mlir --target sm_80 --emit=cubin -o tf32_matmul.cubin \
//       --pipeline='matmul-warp{block-m=128 block-n=128 block-k=16 stages=2 atom=mma.m16n8k8.tf32}'

func.func @matmul(%a: tensor<256x2048xf32>, %b: tensor<2048x256xf32>) -> tensor<2048x2048xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2048x2048xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %out = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<256x2048xf32>, tensor<2048x256xf32>)
      outs(%init : tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %out : tensor<2048x2048xf32>
}
