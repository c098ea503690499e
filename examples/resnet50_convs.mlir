// The distinct convolutions of ResNet-50 (v1.5: stride 2 in the 3x3), batch 1, f16 with f32 results.
//
//   tc-opt examples/resnet50_convs.mlir --split-input-file --pipeline=conv --emit=mlir -o /dev/null
//
// prints for each the table of schedules and the choice (modelled); bench/conv_schedules.py sums up.

// conv1: the stem
func.func @conv1(%x: tensor<1x224x224x3xf16>, %w: tensor<7x7x3x64xf16>) -> tensor<1x112x112x64xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 3, 3, 0] high[0, 3, 3, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x224x224x3xf16> to tensor<1x230x230x3xf16>
  %empty = tensor.empty() : tensor<1x112x112x64xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x230x230x3xf16>, tensor<7x7x3x64xf16>)
      outs(%init : tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  return %out : tensor<1x112x112x64xf32>
}

// -----

// conv2_x, first block: 1x1 in
func.func @conv2_reduce_first(%x: tensor<1x56x56x64xf16>, %w: tensor<1x1x64x64xf16>) -> tensor<1x56x56x64xf32> {
  %empty = tensor.empty() : tensor<1x56x56x64xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x56x56x64xf16>, tensor<1x1x64x64xf16>)
      outs(%init : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  return %out : tensor<1x56x56x64xf32>
}

// -----

// conv2_x: 1x1 out (and the first block's shortcut)
func.func @conv2_expand(%x: tensor<1x56x56x64xf16>, %w: tensor<1x1x64x256xf16>) -> tensor<1x56x56x256xf32> {
  %empty = tensor.empty() : tensor<1x56x56x256xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x56x56x256xf32>) -> tensor<1x56x56x256xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x56x56x64xf16>, tensor<1x1x64x256xf16>)
      outs(%init : tensor<1x56x56x256xf32>) -> tensor<1x56x56x256xf32>
  return %out : tensor<1x56x56x256xf32>
}

// -----

// conv2_x, later blocks: 1x1 in
func.func @conv2_reduce(%x: tensor<1x56x56x256xf16>, %w: tensor<1x1x256x64xf16>) -> tensor<1x56x56x64xf32> {
  %empty = tensor.empty() : tensor<1x56x56x64xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x56x56x256xf16>, tensor<1x1x256x64xf16>)
      outs(%init : tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32>
  return %out : tensor<1x56x56x64xf32>
}

// -----

// conv2_x: 3x3
func.func @conv2_3x3(%x: tensor<1x56x56x64xf16>, %w: tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf32> {
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

// -----

// conv3_x, first block: 1x1 in
func.func @conv3_reduce_first(%x: tensor<1x56x56x256xf16>, %w: tensor<1x1x256x128xf16>) -> tensor<1x56x56x128xf32> {
  %empty = tensor.empty() : tensor<1x56x56x128xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x56x56x256xf16>, tensor<1x1x256x128xf16>)
      outs(%init : tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32>
  return %out : tensor<1x56x56x128xf32>
}

// -----

// conv3_x, first block: 3x3, stride 2
func.func @conv3_3x3_stride2(%x: tensor<1x56x56x128xf16>, %w: tensor<3x3x128x128xf16>) -> tensor<1x28x28x128xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x56x56x128xf16> to tensor<1x58x58x128xf16>
  %empty = tensor.empty() : tensor<1x28x28x128xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x28x28x128xf32>) -> tensor<1x28x28x128xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x58x58x128xf16>, tensor<3x3x128x128xf16>)
      outs(%init : tensor<1x28x28x128xf32>) -> tensor<1x28x28x128xf32>
  return %out : tensor<1x28x28x128xf32>
}

// -----

// conv3_x: 1x1 out
func.func @conv3_expand(%x: tensor<1x28x28x128xf16>, %w: tensor<1x1x128x512xf16>) -> tensor<1x28x28x512xf32> {
  %empty = tensor.empty() : tensor<1x28x28x512xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x28x28x128xf16>, tensor<1x1x128x512xf16>)
      outs(%init : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
  return %out : tensor<1x28x28x512xf32>
}

// -----

// conv3_x, first block: shortcut
func.func @conv3_shortcut(%x: tensor<1x56x56x256xf16>, %w: tensor<1x1x256x512xf16>) -> tensor<1x28x28x512xf32> {
  %empty = tensor.empty() : tensor<1x28x28x512xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>}
      ins(%x, %w : tensor<1x56x56x256xf16>, tensor<1x1x256x512xf16>)
      outs(%init : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
  return %out : tensor<1x28x28x512xf32>
}

// -----

// conv3_x, later blocks: 1x1 in
func.func @conv3_reduce(%x: tensor<1x28x28x512xf16>, %w: tensor<1x1x512x128xf16>) -> tensor<1x28x28x128xf32> {
  %empty = tensor.empty() : tensor<1x28x28x128xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x28x28x128xf32>) -> tensor<1x28x28x128xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x28x28x512xf16>, tensor<1x1x512x128xf16>)
      outs(%init : tensor<1x28x28x128xf32>) -> tensor<1x28x28x128xf32>
  return %out : tensor<1x28x28x128xf32>
}

// -----

// conv3_x: 3x3
func.func @conv3_3x3(%x: tensor<1x28x28x128xf16>, %w: tensor<3x3x128x128xf16>) -> tensor<1x28x28x128xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x28x28x128xf16> to tensor<1x30x30x128xf16>
  %empty = tensor.empty() : tensor<1x28x28x128xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x28x28x128xf32>) -> tensor<1x28x28x128xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x30x30x128xf16>, tensor<3x3x128x128xf16>)
      outs(%init : tensor<1x28x28x128xf32>) -> tensor<1x28x28x128xf32>
  return %out : tensor<1x28x28x128xf32>
}

// -----

// conv4_x, first block: 1x1 in
func.func @conv4_reduce_first(%x: tensor<1x28x28x512xf16>, %w: tensor<1x1x512x256xf16>) -> tensor<1x28x28x256xf32> {
  %empty = tensor.empty() : tensor<1x28x28x256xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x28x28x256xf32>) -> tensor<1x28x28x256xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x28x28x512xf16>, tensor<1x1x512x256xf16>)
      outs(%init : tensor<1x28x28x256xf32>) -> tensor<1x28x28x256xf32>
  return %out : tensor<1x28x28x256xf32>
}

// -----

// conv4_x, first block: 3x3, stride 2
func.func @conv4_3x3_stride2(%x: tensor<1x28x28x256xf16>, %w: tensor<3x3x256x256xf16>) -> tensor<1x14x14x256xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x28x28x256xf16> to tensor<1x30x30x256xf16>
  %empty = tensor.empty() : tensor<1x14x14x256xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x30x30x256xf16>, tensor<3x3x256x256xf16>)
      outs(%init : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  return %out : tensor<1x14x14x256xf32>
}

// -----

// conv4_x: 1x1 out
func.func @conv4_expand(%x: tensor<1x14x14x256xf16>, %w: tensor<1x1x256x1024xf16>) -> tensor<1x14x14x1024xf32> {
  %empty = tensor.empty() : tensor<1x14x14x1024xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x14x14x1024xf32>) -> tensor<1x14x14x1024xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x14x14x256xf16>, tensor<1x1x256x1024xf16>)
      outs(%init : tensor<1x14x14x1024xf32>) -> tensor<1x14x14x1024xf32>
  return %out : tensor<1x14x14x1024xf32>
}

// -----

// conv4_x, first block: shortcut
func.func @conv4_shortcut(%x: tensor<1x28x28x512xf16>, %w: tensor<1x1x512x1024xf16>) -> tensor<1x14x14x1024xf32> {
  %empty = tensor.empty() : tensor<1x14x14x1024xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x14x14x1024xf32>) -> tensor<1x14x14x1024xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>}
      ins(%x, %w : tensor<1x28x28x512xf16>, tensor<1x1x512x1024xf16>)
      outs(%init : tensor<1x14x14x1024xf32>) -> tensor<1x14x14x1024xf32>
  return %out : tensor<1x14x14x1024xf32>
}

// -----

// conv4_x, later blocks: 1x1 in
func.func @conv4_reduce(%x: tensor<1x14x14x1024xf16>, %w: tensor<1x1x1024x256xf16>) -> tensor<1x14x14x256xf32> {
  %empty = tensor.empty() : tensor<1x14x14x256xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x14x14x1024xf16>, tensor<1x1x1024x256xf16>)
      outs(%init : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  return %out : tensor<1x14x14x256xf32>
}

// -----

// conv4_x: 3x3
func.func @conv4_3x3(%x: tensor<1x14x14x256xf16>, %w: tensor<3x3x256x256xf16>) -> tensor<1x14x14x256xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x14x14x256xf16> to tensor<1x16x16x256xf16>
  %empty = tensor.empty() : tensor<1x14x14x256xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x16x16x256xf16>, tensor<3x3x256x256xf16>)
      outs(%init : tensor<1x14x14x256xf32>) -> tensor<1x14x14x256xf32>
  return %out : tensor<1x14x14x256xf32>
}

// -----

// conv5_x, first block: 1x1 in
func.func @conv5_reduce_first(%x: tensor<1x14x14x1024xf16>, %w: tensor<1x1x1024x512xf16>) -> tensor<1x14x14x512xf32> {
  %empty = tensor.empty() : tensor<1x14x14x512xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x14x14x512xf32>) -> tensor<1x14x14x512xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x14x14x1024xf16>, tensor<1x1x1024x512xf16>)
      outs(%init : tensor<1x14x14x512xf32>) -> tensor<1x14x14x512xf32>
  return %out : tensor<1x14x14x512xf32>
}

// -----

// conv5_x, first block: 3x3, stride 2
func.func @conv5_3x3_stride2(%x: tensor<1x14x14x512xf16>, %w: tensor<3x3x512x512xf16>) -> tensor<1x7x7x512xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x14x14x512xf16> to tensor<1x16x16x512xf16>
  %empty = tensor.empty() : tensor<1x7x7x512xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x16x16x512xf16>, tensor<3x3x512x512xf16>)
      outs(%init : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  return %out : tensor<1x7x7x512xf32>
}

// -----

// conv5_x: 1x1 out
func.func @conv5_expand(%x: tensor<1x7x7x512xf16>, %w: tensor<1x1x512x2048xf16>) -> tensor<1x7x7x2048xf32> {
  %empty = tensor.empty() : tensor<1x7x7x2048xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x7x7x2048xf32>) -> tensor<1x7x7x2048xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x7x7x512xf16>, tensor<1x1x512x2048xf16>)
      outs(%init : tensor<1x7x7x2048xf32>) -> tensor<1x7x7x2048xf32>
  return %out : tensor<1x7x7x2048xf32>
}

// -----

// conv5_x, first block: shortcut
func.func @conv5_shortcut(%x: tensor<1x14x14x1024xf16>, %w: tensor<1x1x1024x2048xf16>) -> tensor<1x7x7x2048xf32> {
  %empty = tensor.empty() : tensor<1x7x7x2048xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x7x7x2048xf32>) -> tensor<1x7x7x2048xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<[2, 2]> : tensor<2xi64>}
      ins(%x, %w : tensor<1x14x14x1024xf16>, tensor<1x1x1024x2048xf16>)
      outs(%init : tensor<1x7x7x2048xf32>) -> tensor<1x7x7x2048xf32>
  return %out : tensor<1x7x7x2048xf32>
}

// -----

// conv5_x, later blocks: 1x1 in
func.func @conv5_reduce(%x: tensor<1x7x7x2048xf16>, %w: tensor<1x1x2048x512xf16>) -> tensor<1x7x7x512xf32> {
  %empty = tensor.empty() : tensor<1x7x7x512xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x7x7x2048xf16>, tensor<1x1x2048x512xf16>)
      outs(%init : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  return %out : tensor<1x7x7x512xf32>
}

// -----

// conv5_x: 3x3
func.func @conv5_3x3(%x: tensor<1x7x7x512xf16>, %w: tensor<3x3x512x512xf16>) -> tensor<1x7x7x512xf32> {
  %zero = arith.constant 0.0 : f16
  %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero : f16
  } : tensor<1x7x7x512xf16> to tensor<1x9x9x512xf16>
  %empty = tensor.empty() : tensor<1x7x7x512xf32>
  %f0 = arith.constant 0.0 : f32
  %init = linalg.fill ins(%f0 : f32) outs(%empty : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  %out = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%padded, %w : tensor<1x9x9x512xf16>, tensor<3x3x512x512xf16>)
      outs(%init : tensor<1x7x7x512xf32>) -> tensor<1x7x7x512xf32>
  return %out : tensor<1x7x7x512xf32>
}
