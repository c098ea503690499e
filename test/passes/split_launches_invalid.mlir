// What no launch computes is not dropped.
// RUN: %tc-opt %s --split-input-file --reorder-scales --split-launches --verify-diagnostics

func.func @rounded_twice(%a: tensor<128x256xf4E2M1FN>, %sa: tensor<128x16xf8E4M3FN>, %b: tensor<64x256xf4E2M1FN>, %sb: tensor<64x16xf8E4M3FN>) -> tensor<128x64xf16> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) -> tensor<128x64xf16>
  // expected-error @below {{expected @rounded_twice to return what one of its launches writes, got the result of arith.negf after them: an epilogue is fused with sums in f32 only; let the op before it return f32, or put this one into a function of its own}}
  %y = arith.negf %c : tensor<128x64xf16>
  return %y : tensor<128x64xf16>
}
