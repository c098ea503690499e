// One tile of one warp: 16 x 8 x 8 in tf32, A M-major (stored [K, M]), B K-major (stored [N, K]).
// examples/warp_matmul.py compiles it twice, without and with ldmatrix.
//
//   tc-opt examples/tf32_one_tile.mlir --target sm_80 --validate-each --emit=ptx \
//       --pipeline='matmul-warp{block-m=16 block-n=8 block-k=8 stages=2 atom=mma.m16n8k8.tf32}'

func.func @one_tile(%a: tensor<8x16xf32>, %b: tensor<8x8xf32>) -> tensor<16x8xf32> {
  %f0 = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x8xf32>
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<16x8xf32>) -> tensor<16x8xf32>
  %out = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<8x16xf32>, tensor<8x8xf32>)
      outs(%init : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %out : tensor<16x8xf32>
}
