// RUN: %tc-opt --split-input-file --verify-diagnostics --split-k="{splits=2}" %s

func.func @scaled(%a: tensor<8x64xf4E2M1FN>, %sa: tensor<1x1x512xf8E4M3FN>, %b: tensor<16x64xf4E2M1FN>, %sb: tensor<16x4xf8E4M3FN>) -> tensor<8x16xf32> {
  // expected-error @+1 {{expected split-k=1 with block-scaled operands, got 2 (global scales multiply whole sums)}}
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<8x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>, tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>) -> tensor<8x16xf32>
  return %c : tensor<8x16xf32>
}
