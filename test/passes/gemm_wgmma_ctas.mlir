// A loop over tiles has the fewest CTAs that take as many rounds as one for each of 132 SMs.
// RUN: %tc-opt %s --target=sm_90a --tile-gemm="{n-tile=256}" | %filecheck %s
// RUN: %tc-opt %s --target=sm_90a --tile-gemm="{n-tile=256 persistent=true ctas=132}" | %filecheck %s --check-prefix=ASKED
// RUN: %tc-opt %s --target=sm_90a --tile-gemm="{n-tile=256 cluster=2x1}" | %filecheck %s --check-prefix=CLUSTERS

// 512 tiles, four rounds of 128 CTAs; with clusters, of 64 pairs instead of 66.
// CHECK-LABEL: func.func @four_rounds(
// CHECK-SAME: tc.grid = array<i64: 128, 1, 1>
// ASKED-LABEL: func.func @four_rounds(
// ASKED-SAME: tc.grid = array<i64: 132, 1, 1>
// CLUSTERS-LABEL: func.func @four_rounds(
// CLUSTERS-SAME: tc.grid = array<i64: 128, 1, 1>
func.func @four_rounds(%a: tensor<4096x64xf16>, %b: tensor<64x4096xf16>) -> tensor<4096x4096xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<4096x64xf16>, tensor<64x4096xf16>) -> tensor<4096x4096xf16>
  return %c : tensor<4096x4096xf16>
}

// 136 tiles, two rounds, of 68 CTAs or 36 pairs: rows of tiles are filled up to 18.
// CHECK-LABEL: func.func @two_rounds(
// CHECK-SAME: tc.grid = array<i64: 68, 1, 1>
// ASKED-LABEL: func.func @two_rounds(
// CLUSTERS-LABEL: func.func @two_rounds(
// CLUSTERS-SAME: tc.grid = array<i64: 72, 1, 1>
func.func @two_rounds(%a: tensor<2176x64xf16>, %b: tensor<64x2048xf16>) -> tensor<2176x2048xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<2176x64xf16>, tensor<64x2048xf16>) -> tensor<2176x2048xf16>
  return %c : tensor<2176x2048xf16>
}

// 128 tiles: one each.
// CHECK-LABEL: func.func @one_each(
// CHECK-SAME: tc.grid = array<i64: 16, 8, 1>
func.func @one_each(%a: tensor<2048x64xf16>, %b: tensor<64x2048xf16>) -> tensor<2048x2048xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<2048x64xf16>, tensor<64x2048xf16>) -> tensor<2048x2048xf16>
  return %c : tensor<2048x2048xf16>
}
