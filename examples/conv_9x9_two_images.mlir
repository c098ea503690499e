// Two images of 9x9, 3x3 filter, padding left and right only: P = 7, Q = 9. docs/explanation/convolution.md follows its lanes.
//
//   tc-opt examples/conv_9x9_two_images.mlir --pipeline='conv-shift-reuse{tiling=linear}' --validate-each
//   tc-opt examples/conv_9x9_two_images.mlir \
//       --pass-pipeline='builtin.module(raise-to-tc,tile-conv-shift-reuse{tiling=linear})' | tc-viz conv - --filter-row 0

func.func @conv(%x: tensor<2x9x9x16xf16>, %w: tensor<3x3x16x16xf16>) -> tensor<2x7x9x16xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 0, 1, 0] high[0, 0, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<2x9x9x16xf16> to tensor<2x9x11x16xf16>
  %empty = tensor.empty() : tensor<2x7x9x16xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<2x7x9x16xf32>) -> tensor<2x7x9x16xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<2x9x11x16xf16>, tensor<3x3x16x16xf16>)
      outs(%init : tensor<2x7x9x16xf32>) -> tensor<2x7x9x16xf32>
  return %out : tensor<2x7x9x16xf32>
}
