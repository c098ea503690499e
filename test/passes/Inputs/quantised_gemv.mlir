func.func @f(%a: tensor<64x256xf4E2M1FN>, %sa: tensor<64x16xf8E4M3FN>, %b: tensor<16x256xf4E2M1FN>, %sb: tensor<16x16xf8E4M3FN>) -> (tensor<64x16xf4E2M1FN>, tensor<64x1xf8E4M3FN>) {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>, tensor<16x256xf4E2M1FN>, tensor<16x16xf8E4M3FN>) -> tensor<64x16xf32>
  %q, %s = "tc.quantise_blocks"(%c) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<64x16xf32>) -> (tensor<64x16xf4E2M1FN>, tensor<64x1xf8E4M3FN>)
  return %q, %s : tensor<64x16xf4E2M1FN>, tensor<64x1xf8E4M3FN>
}
