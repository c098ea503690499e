// RUN: %tc-opt --split-input-file --verify-diagnostics --target=sm_90a --tile-conv-smem-offset %s

// Whole sums, and their parts, which sm_90a has only in conv-implicit-gemm.
func.func @whole(%x: tensor<1x8x8x64xf16>, %w: tensor<3x3x64x16xf16>) -> tensor<1x8x8x16xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x64xf16>, tensor<3x3x64x16xf16>) -> tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}

// -----

func.func @parts(%x: tensor<1x8x8x64xf16>, %w: tensor<3x3x64x16xf16>) -> tensor<3x1x8x8x16xf32> {
  // expected-error @+1 {{expected whole sums with taps that read rows of one tile for sm_90a, got parts of K: not built: rows of a fragment walk on from the last image of a part to the next part; take tile-conv-implicit-gemm, or leave out split-conv-k}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", k_part = 192 : i64}
      : (tensor<1x8x8x64xf16>, tensor<3x3x64x16xf16>) -> tensor<3x1x8x8x16xf32>
  return %y : tensor<3x1x8x8x16xf32>
}
