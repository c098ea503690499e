// Four channels of nn.Conv2d(8, 16, 3), channels first.
func.func @conv_part(%x: tensor<1x8x11x11xf16>, %w: tensor<16x8x3x3xf16>) -> tensor<1x4x9x9xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x9x9xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%i : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %s = tensor.extract_slice %y[0, 4, 0, 0] [1, 4, 9, 9] [1, 1, 1, 1] : tensor<1x16x9x9xf32> to tensor<1x4x9x9xf32>
  return %s : tensor<1x4x9x9xf32>
}
