func.func @conv(%x: tensor<1x9x40x8xf16>, %w: tensor<1x4x8x8xf16>) -> tensor<1x9x4x8xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 4>, dilations = array<i64: 1, 9>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x9x40x8xf16>, tensor<1x4x8x8xf16>) -> tensor<1x9x4x8xf32>
  return %y : tensor<1x9x4x8xf32>
}
