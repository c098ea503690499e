// swap-operands: few rows become the columns of the mma.
// RUN: %tc-opt %s --split-input-file --swap-operands | %filecheck %s
// RUN: %tc-opt %s --split-input-file --swap-operands="{swap=always}" | %filecheck %s --check-prefix=ALWAYS
// RUN: %tc-opt %s --split-input-file --swap-operands="{swap=never}" | %filecheck %s --check-prefix=NEVER
// RUN: %tc-opt %s --split-input-file --swap-operands="{n-tile=128}" | %filecheck %s --check-prefix=NEVER
// RUN: %tc-opt %s --split-input-file --swap-operands 2>&1 | %filecheck %s --check-prefix=REMARK
// RUN: %exits 3 %tc-opt %s --split-input-file --swap-operands="{swap=yes}" | %filecheck %s --check-prefix=YES
// YES: expected swap to be one of auto, always, never, got yes; leave it out

// Decoding. The epilogue counts the dimensions of the result, which are as before.
// CHECK-LABEL: func.func @decode(
// CHECK: %[[C:.*]] = "tc.matmul"(%arg1, %arg0) {a_layout = "km", b_layout = "nk", out_layout = "nm"} : (tensor<64x4096xf16>, tensor<8x64xf16>) -> tensor<8x4096xf32>
// CHECK: "tc.epilogue"(%[[C]])
// CHECK: "tc.element"(%arg2) {map = #map}
// NEVER-LABEL: func.func @decode(
// NEVER: "tc.matmul"(%arg0, %arg1) {a_layout = "mk", b_layout = "kn"}
// REMARK: remark: operands exchanged, so that the 4096 columns of B become rows of tiles: the 8 x 4096 result takes mma of 128 x 4096 rows x columns as it is, and 4096 x 16 exchanged
func.func @decode(%a: tensor<8x64xf16>, %b: tensor<64x4096xf16>, %bias: tensor<4096xf32>) -> tensor<8x4096xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<8x64xf16>, tensor<64x4096xf16>) -> tensor<8x4096xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %e = "tc.element"(%bias) {map = affine_map<(m, n) -> (n)>} : (tensor<4096xf32>) -> f32
    %t = arith.addf %s, %e : f32
    "tc.yield"(%t) : (f32) -> ()
  }) : (tensor<8x4096xf32>) -> tensor<8x4096xf32>
  return %d : tensor<8x4096xf32>
}

// -----

// 128 rows fill a tile.
// CHECK-LABEL: func.func @prefill(
// CHECK: "tc.matmul"(%arg0, %arg1) {a_layout = "km", b_layout = "nk"}
// ALWAYS-LABEL: func.func @prefill(
// ALWAYS: "tc.matmul"(%arg1, %arg0) {a_layout = "mk", b_layout = "kn", out_layout = "nm"}
func.func @prefill(%a: tensor<2x64x128xf16>, %b: tensor<2x4096x64xf16>) -> tensor<2x128x4096xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "nk"} : (tensor<2x64x128xf16>, tensor<2x4096x64xf16>) -> tensor<2x128x4096xf32>
  return %c : tensor<2x128x4096xf32>
}

// -----

// The scales go with their operand. A result that is stored by columns is stored by rows again.
// CHECK-LABEL: func.func @scaled(
// CHECK: "tc.block_scaled_matmul"(%arg2, %arg3, %arg0, %arg1) {a_scale_layout = "row_major", b_scale_layout = "blocked_128x4", {{.*}}out_layout = "nm"}
// CHECK: "tc.matmul"(%arg1, %arg0) {a_layout = "mk", b_layout = "kn", out_layout = "nm"}
// ALWAYS-LABEL: func.func @back(
// ALWAYS: "tc.matmul"(%arg0, %arg1) {a_layout = "km", b_layout = "nk"}
func.func @scaled(%a: tensor<8x64xf4E2M1FN>, %sa: tensor<1x1x512xf8E4M3FN>, %b: tensor<256x64xf4E2M1FN>, %sb: tensor<256x4xf8E4M3FN>) -> tensor<8x256xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<8x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>, tensor<256x64xf4E2M1FN>, tensor<256x4xf8E4M3FN>) -> tensor<8x256xf32>
  return %c : tensor<8x256xf32>
}
func.func @back(%a: tensor<64x16xf16>, %b: tensor<8x64xf16>) -> tensor<16x8xf32> {
  %c = "tc.matmul"(%b, %a) {a_layout = "mk", b_layout = "kn", out_layout = "nm"} : (tensor<8x64xf16>, tensor<64x16xf16>) -> tensor<16x8xf32>
  return %c : tensor<16x8xf32>
}
