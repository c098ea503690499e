// ResNet-50 (v1.5), the first bottleneck of conv3_x, batch 1, f16: 1x1, 3x3 with stride 2, 1x1, and the shortcut's 1x1
// with stride 2. Batch norm is folded to a scale and a bias for each channel. Four kernels: every scale, bias, relu
// and rounding is in an epilogue, and the last one adds the shortcut.
//
//   tc-opt examples/resnet50_bottleneck.mlir --pipeline=conv --emit=launches

#all = affine_map<(n, p, q, k) -> (n, p, q, k)>
#channel = affine_map<(n, p, q, k) -> (k)>

func.func @bottleneck(%x: tensor<1x56x56x256xf16>,
    %reduce_w: tensor<1x1x256x128xf16>, %reduce_scale: tensor<128xf32>, %reduce_bias: tensor<128xf32>,
    %middle_w: tensor<3x3x128x128xf16>, %middle_scale: tensor<128xf32>, %middle_bias: tensor<128xf32>,
    %expand_w: tensor<1x1x128x512xf16>, %expand_scale: tensor<512xf32>, %expand_bias: tensor<512xf32>,
    %shortcut_w: tensor<1x1x256x512xf16>, %shortcut_scale: tensor<512xf32>, %shortcut_bias: tensor<512xf32>)
        -> tensor<1x28x28x512xf16> {
  %zero = arith.constant 0.0 : f32
  %zero_f16 = arith.constant 0.0 : f16

  %reduce_empty = tensor.empty() : tensor<1x56x56x128xf32>
  %reduce_zeros = linalg.fill ins(%zero : f32) outs(%reduce_empty : tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32>
  %reduce_sums = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %reduce_w : tensor<1x56x56x256xf16>, tensor<1x1x256x128xf16>)
      outs(%reduce_zeros : tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32>
  %reduced_empty_f16 = tensor.empty() : tensor<1x56x56x128xf16>
  %reduced = linalg.generic {indexing_maps = [#all, #channel, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%reduce_sums, %reduce_scale, %reduce_bias : tensor<1x56x56x128xf32>, tensor<128xf32>, tensor<128xf32>)
      outs(%reduced_empty_f16 : tensor<1x56x56x128xf16>) {
  ^bb0(%s: f32, %t: f32, %u: f32, %o: f16):
    %scaled = arith.mulf %s, %t : f32
    %biased = arith.addf %scaled, %u : f32
    %relu = arith.maximumf %biased, %zero : f32
    %rounded = arith.truncf %relu : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<1x56x56x128xf16>

  %middle_padded = tensor.pad %reduced low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero_f16 : f16
  } : tensor<1x56x56x128xf16> to tensor<1x58x58x128xf16>
  %middle_empty = tensor.empty() : tensor<1x28x28x128xf32>
  %middle_zeros = linalg.fill ins(%zero : f32) outs(%middle_empty : tensor<1x28x28x128xf32>) -> tensor<1x28x28x128xf32>
  %middle_sums = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%middle_padded, %middle_w : tensor<1x58x58x128xf16>, tensor<3x3x128x128xf16>)
      outs(%middle_zeros : tensor<1x28x28x128xf32>) -> tensor<1x28x28x128xf32>
  %convolved_empty_f16 = tensor.empty() : tensor<1x28x28x128xf16>
  %convolved = linalg.generic {indexing_maps = [#all, #channel, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%middle_sums, %middle_scale, %middle_bias : tensor<1x28x28x128xf32>, tensor<128xf32>, tensor<128xf32>)
      outs(%convolved_empty_f16 : tensor<1x28x28x128xf16>) {
  ^bb0(%s: f32, %t: f32, %u: f32, %o: f16):
    %scaled = arith.mulf %s, %t : f32
    %biased = arith.addf %scaled, %u : f32
    %relu = arith.maximumf %biased, %zero : f32
    %rounded = arith.truncf %relu : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<1x28x28x128xf16>

  %expand_empty = tensor.empty() : tensor<1x28x28x512xf32>
  %expand_zeros = linalg.fill ins(%zero : f32) outs(%expand_empty : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
  %expand_sums = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%convolved, %expand_w : tensor<1x28x28x128xf16>, tensor<1x1x128x512xf16>)
      outs(%expand_zeros : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>

  %shortcut_empty = tensor.empty() : tensor<1x28x28x512xf32>
  %shortcut_zeros = linalg.fill ins(%zero : f32) outs(%shortcut_empty : tensor<1x28x28x512xf32>)
        -> tensor<1x28x28x512xf32>
  %shortcut_sums = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%x, %shortcut_w : tensor<1x56x56x256xf16>, tensor<1x1x256x512xf16>)
      outs(%shortcut_zeros : tensor<1x28x28x512xf32>) -> tensor<1x28x28x512xf32>
  %residual_empty_f16 = tensor.empty() : tensor<1x28x28x512xf16>
  %residual = linalg.generic {indexing_maps = [#all, #channel, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%shortcut_sums, %shortcut_scale, %shortcut_bias : tensor<1x28x28x512xf32>, tensor<512xf32>, tensor<512xf32>)
      outs(%residual_empty_f16 : tensor<1x28x28x512xf16>) {
  ^bb0(%s: f32, %t: f32, %u: f32, %o: f16):
    %scaled = arith.mulf %s, %t : f32
    %biased = arith.addf %scaled, %u : f32
    %rounded = arith.truncf %biased : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<1x28x28x512xf16>
  %y_empty_f16 = tensor.empty() : tensor<1x28x28x512xf16>
  %y = linalg.generic {indexing_maps = [#all, #channel, #channel, #all, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%expand_sums, %expand_scale, %expand_bias, %residual
        : tensor<1x28x28x512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<1x28x28x512xf16>)
      outs(%y_empty_f16 : tensor<1x28x28x512xf16>) {
  ^bb0(%s: f32, %t: f32, %u: f32, %v: f16, %o: f16):
    %scaled = arith.mulf %s, %t : f32
    %biased = arith.addf %scaled, %u : f32
    %shortcut = arith.extf %v : f16 to f32
    %sum = arith.addf %biased, %shortcut : f32
    %relu = arith.maximumf %sum, %zero : f32
    %rounded = arith.truncf %relu : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<1x28x28x512xf16>
  return %y : tensor<1x28x28x512xf16>
}
