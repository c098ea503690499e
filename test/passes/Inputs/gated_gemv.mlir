func.func @f(%a: tensor<16x64xf4E2M1FN>, %sa: tensor<1x1x512xf8E4M3FN>, %b: tensor<2x64xf4E2M1FN>, %sb: tensor<1x1x512xf8E4M3FN>) -> tensor<16x1xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4",
      b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
      : (tensor<16x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>, tensor<2x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) -> tensor<16x2xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%gate: f32, %value: f32):
    %v = arith.mulf %gate, %value : f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<16x2xf32>) -> tensor<16x1xf32>
  return %d : tensor<16x1xf32>
}
