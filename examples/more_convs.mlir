// Convolutions of other networks, and the example of docs/explanation/convolution.md.
//
//   tc-opt examples/more_convs.mlir --split-input-file --pipeline=conv --emit=mlir -o /dev/null

// DeepLab: 3x3, dilation 2 (atrous), 33x33x256
func.func @deeplab_3x3_dilation2(%x: tensor<1x33x33x256xf16>, %w: tensor<3x3x256x256xf16>) -> tensor<1x33x33x256xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 2, 2, 0] high[0, 2, 2, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x33x33x256xf16> to tensor<1x37x37x256xf16>
  %empty = tensor.empty() : tensor<1x33x33x256xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x33x33x256xf32>) -> tensor<1x33x33x256xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<[2, 2]> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x37x37x256xf16>, tensor<3x3x256x256xf16>)
      outs(%init : tensor<1x33x33x256xf32>) -> tensor<1x33x33x256xf32>
  return %out : tensor<1x33x33x256xf32>
}

// -----

// Inception-v3: the pair 1x7, 7x1 at 17x17
func.func @inception_1x7(%x: tensor<1x17x17x128xf16>, %w: tensor<1x7x128x128xf16>) -> tensor<1x17x17x128xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 0, 3, 0] high[0, 0, 3, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x17x17x128xf16> to tensor<1x17x23x128xf16>
  %empty = tensor.empty() : tensor<1x17x17x128xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x17x17x128xf32>) -> tensor<1x17x17x128xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x17x23x128xf16>, tensor<1x7x128x128xf16>)
      outs(%init : tensor<1x17x17x128xf32>) -> tensor<1x17x17x128xf32>
  return %out : tensor<1x17x17x128xf32>
}

// -----

func.func @inception_7x1(%x: tensor<1x17x17x128xf16>, %w: tensor<7x1x128x192xf16>) -> tensor<1x17x17x192xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 3, 0, 0] high[0, 3, 0, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x17x17x128xf16> to tensor<1x23x17x128xf16>
  %empty = tensor.empty() : tensor<1x17x17x192xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x17x17x192xf32>) -> tensor<1x17x17x192xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x23x17x128xf16>, tensor<7x1x128x192xf16>)
      outs(%init : tensor<1x17x17x192xf32>) -> tensor<1x17x17x192xf32>
  return %out : tensor<1x17x17x192xf32>
}

// -----

// Two images of 9x9, padding left and right only: the example of docs/explanation/convolution.md
func.func @nine_by_nine(%x: tensor<2x9x9x64xf16>, %w: tensor<3x3x64x64xf16>) -> tensor<2x7x9x64xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 0, 1, 0] high[0, 0, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<2x9x9x64xf16> to tensor<2x9x11x64xf16>
  %empty = tensor.empty() : tensor<2x7x9x64xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<2x7x9x64xf32>) -> tensor<2x7x9x64xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<2x9x11x64xf16>, tensor<3x3x64x64xf16>)
      outs(%init : tensor<2x7x9x64xf32>) -> tensor<2x7x9x64xf32>
  return %out : tensor<2x7x9x64xf32>
}
