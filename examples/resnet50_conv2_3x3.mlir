// ResNet-50, stage conv2_x: 56x56x64 -> 56x56x64, 3x3, stride 1, padding 1, batch 1.
//
//   tc-opt examples/resnet50_conv2_3x3.mlir --pipeline=conv-shift-reuse --validate-each --emit=ptx

func.func @conv(%x: tensor<1x56x56x64xf16>, %w: tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x56x56x64xf16> to tensor<1x58x58x64xf16>
  %empty = tensor.empty() : tensor<1x56x56x64xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x58x58x64xf16>, tensor<3x3x64x64xf16>)
      outs(%init : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  return %out : tensor<1x56x56x64xf32>
}
