// RUN: %tc-opt --split-input-file --verify-diagnostics --split-k="{splits=2}" %s

func.func @quantised(%a: tensor<8x512xf4E2M1FN>, %sa: tensor<1x8x512xf8E4M3FN>, %b: tensor<64x512xf4E2M1FN>, %sb: tensor<1x8x512xf8E4M3FN>) -> (tensor<8x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) {
  // expected-error @+1 {{expected split-k=1 with a quantised result, got 2: the kernel that sums the parts computes one element in each thread, not a block of them; leave split-k out}}
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<8x512xf4E2M1FN>, tensor<1x8x512xf8E4M3FN>, tensor<64x512xf4E2M1FN>, tensor<1x8x512xf8E4M3FN>) -> tensor<8x64xf32>
  %q:2 = "tc.quantise_blocks"(%c) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x64xf32>) -> (tensor<8x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return %q#0, %q#1 : tensor<8x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>
}
