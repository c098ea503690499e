// Parts of a tile that a cluster cannot have: of 128 rows of A in f32, M innermost, four of one swizzle span of 32.
// RUN: %tc-opt --split-input-file --verify-diagnostics --tile-gemm="{cluster=1x8}" %s

func.func @rows(%a: tensor<64x260xf32>, %b: tensor<64x40xf32>) -> tensor<260x40xf32> {
  // expected-error @+1 {{expected at most 4 CTAs that share a tile of A, got 8: each loads a part of its 128 rows, whole swizzle patterns of 32 where they are innermost; take cluster=1x4}}
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "kn"} : (tensor<64x260xf32>, tensor<64x40xf32>) -> tensor<260x40xf32>
  return %c : tensor<260x40xf32>
}
