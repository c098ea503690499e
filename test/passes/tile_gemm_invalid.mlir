// What tile-gemm cannot load, each with a way out.
// RUN: %tc-opt --split-input-file --verify-diagnostics --tile-gemm %s

func.func @columns(%a: tensor<128x64xf32>, %b: tensor<64x42xf32>) -> tensor<128x42xf32> {
  // expected-error @+1 {{expected N to be a multiple of 4, got N=42}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<128x64xf32>, tensor<64x42xf32>) -> tensor<128x42xf32>
  return %c : tensor<128x42xf32>
}

// -----

func.func @pitch(%a: tensor<8x24xi8>, %b: tensor<24x16xi8>) -> tensor<8x16xi32> {
  // expected-error @+1 {{expected K to be a multiple of 16, got K=24}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<8x24xi8>, tensor<24x16xi8>) -> tensor<8x16xi32>
  return %c : tensor<8x16xi32>
}

// -----

func.func @rows(%a: tensor<8x64xf4E2M1FN>, %sa: tensor<1x1x512xf8E4M3FN>, %b: tensor<16x64xf4E2M1FN>, %sb: tensor<16x4xf8E4M3FN>) -> tensor<8x16xf32> {
  // expected-error @+1 {{expected b_scale_layout = "blocked_128x4", got "row_major"}}
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<8x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>, tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>) -> tensor<8x16xf32>
  return %c : tensor<8x16xf32>
}

// -----

func.func @vector(%a: tensor<8x64xf4E2M1FN>, %sa: tensor<1x1x512xf8E4M3FN>, %b: tensor<64xf4E2M1FN>, %sb: tensor<4xf8E4M3FN>) -> tensor<8xf32> {
  // expected-error @+1 {{expected B to be a matrix, got a vector; take pipeline gemv-padded-n}}
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<8x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}

// -----

func.func @part(%a: tensor<8x128xf16>, %b: tensor<16x128xf16>) -> tensor<2x8x16xf32> {
  // expected-error @+1 {{expected k_part to be a multiple of 64, got 96 (64 elements are one step of the main loop: a span of the swizzle); take k_part = 128}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk", k_part = 96 : i64} : (tensor<8x128xf16>, tensor<16x128xf16>) -> tensor<2x8x16xf32>
  return %c : tensor<2x8x16xf32>
}
