func.func @f(%x: tensor<1x9x9x8xf16>, %w: tensor<3x3x8x16xf16>) -> tensor<1x7x7x16xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x9x9x8xf16>, tensor<3x3x8x16xf16>) -> tensor<1x7x7x16xf32>
  return %y : tensor<1x7x7x16xf32>
}
