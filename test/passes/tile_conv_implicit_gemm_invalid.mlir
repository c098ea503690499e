// What an im2col tensor map cannot hold.
// RUN: %tc-opt %s --split-input-file --tile-conv-implicit-gemm --verify-diagnostics

func.func @far_taps(%x: tensor<1x1x300x8xf16>, %w: tensor<1x2x8x8xf16>) -> tensor<1x1x150x8xf32> {
  // expected-error @+1 {{the corners of the im2col box must be in [-128, 127], got [0, 0, -150, 0]}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 150>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x1x300x8xf16>, tensor<1x2x8x8xf16>) -> tensor<1x1x150x8xf32>
  return %y : tensor<1x1x150x8xf32>
}

// -----

func.func @long_strides(%x: tensor<1x10x10x8xf16>, %w: tensor<1x1x8x8xf16>) -> tensor<1x2x10x8xf32> {
  // expected-error @+1 {{strides must be in [1, 8], got 9 along h}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 9, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x10x10x8xf16>, tensor<1x1x8x8xf16>) -> tensor<1x2x10x8xf32>
  return %y : tensor<1x2x10x8xf32>
}
