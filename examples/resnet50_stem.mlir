// ResNet-50's stem, batch 1, f16: 7x7 with stride 2 of three channels, scale and bias (folded batch norm), relu, and
// 3x3 max pooling with stride 2 and padding. Rows of three channels are repacked by kernels of their own; pooling is
// one for CUDA cores, which reads the padding's -inf from no memory.
//
//   tc-opt examples/resnet50_stem.mlir --pipeline=conv --emit=launches

#all = affine_map<(n, p, q, k) -> (n, p, q, k)>
#channel = affine_map<(n, p, q, k) -> (k)>

func.func @stem(%x: tensor<1x224x224x3xf16>, %w: tensor<7x7x3x64xf16>, %scale: tensor<64xf32>, %bias: tensor<64xf32>)
    -> tensor<1x56x56x64xf16> {
  %zero = arith.constant 0.0 : f32
  %zero_f16 = arith.constant 0.0 : f16
  %low = arith.constant 0xFC00 : f16

  %conv_padded = tensor.pad %x low[0, 3, 3, 0] high[0, 3, 3, 0] {
  ^bb0(%n: index, %h: index, %i: index, %c: index):
    tensor.yield %zero_f16 : f16
  } : tensor<1x224x224x3xf16> to tensor<1x230x230x3xf16>
  %conv_empty = tensor.empty() : tensor<1x112x112x64xf32>
  %conv_zeros = linalg.fill ins(%zero : f32) outs(%conv_empty : tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  %conv_sums = linalg.conv_2d_nhwc_hwcf
      {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%conv_padded, %w : tensor<1x230x230x3xf16>, tensor<7x7x3x64xf16>)
      outs(%conv_zeros : tensor<1x112x112x64xf32>) -> tensor<1x112x112x64xf32>
  %h_empty_f16 = tensor.empty() : tensor<1x112x112x64xf16>
  %h = linalg.generic {indexing_maps = [#all, #channel, #channel, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%conv_sums, %scale, %bias : tensor<1x112x112x64xf32>, tensor<64xf32>, tensor<64xf32>)
      outs(%h_empty_f16 : tensor<1x112x112x64xf16>) {
  ^bb0(%s: f32, %t: f32, %u: f32, %o: f16):
    %scaled = arith.mulf %s, %t : f32
    %biased = arith.addf %scaled, %u : f32
    %relu = arith.maximumf %biased, %zero : f32
    %rounded = arith.truncf %relu : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<1x112x112x64xf16>

  %padded = tensor.pad %h low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %i: index, %j: index, %c: index):
    tensor.yield %low : f16
  } : tensor<1x112x112x64xf16> to tensor<1x114x114x64xf16>
  %window = tensor.empty() : tensor<3x3xf16>
  %y_empty = tensor.empty() : tensor<1x56x56x64xf16>
  %start = linalg.fill ins(%low : f16) outs(%y_empty : tensor<1x56x56x64xf16>) -> tensor<1x56x56x64xf16>
  %y = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
      ins(%padded, %window : tensor<1x114x114x64xf16>, tensor<3x3xf16>) outs(%start : tensor<1x56x56x64xf16>)
        -> tensor<1x56x56x64xf16>
  return %y : tensor<1x56x56x64xf16>
}
