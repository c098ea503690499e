// nn.Conv2d(8, 16, 3, groups=8, dilation=2), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @conv_depthwise_multiplier(%arg0: tensor<1x8x9x9xf16>, %arg1: tensor<16x1x3x3xf16>, %arg2: tensor<16xf16>) -> tensor<1x16x5x5xf16> {
    %0 = tensor.empty() : tensor<1x16x5x5xf32>
    %1 = tensor.empty() : tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg2 : tensor<16xf16>) outs(%1 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %6 = arith.extf %in : f16 to f32
      linalg.yield %6 : f32
    } -> tensor<16xf32>
    %broadcasted = linalg.broadcast ins(%2 : tensor<16xf32>) outs(%0 : tensor<1x16x5x5xf32>) dimensions = [0, 2, 3] 
    %expanded = tensor.expand_shape %arg0 [[0], [1, 2], [3], [4]] output_shape [1, 8, 1, 9, 9] : tensor<1x8x9x9xf16> into tensor<1x8x1x9x9xf16>
    %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [8, 2, 1, 3, 3] : tensor<16x1x3x3xf16> into tensor<8x2x1x3x3xf16>
    %expanded_1 = tensor.expand_shape %broadcasted [[0], [1, 2], [3], [4]] output_shape [1, 8, 2, 5, 5] : tensor<1x16x5x5xf32> into tensor<1x8x2x5x5xf32>
    %3 = linalg.conv_2d_ngchw_gfchw {dilations = dense<2> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%expanded, %expanded_0 : tensor<1x8x1x9x9xf16>, tensor<8x2x1x3x3xf16>) outs(%expanded_1 : tensor<1x8x2x5x5xf32>) -> tensor<1x8x2x5x5xf32>
    %collapsed = tensor.collapse_shape %3 [[0], [1, 2], [3], [4]] : tensor<1x8x2x5x5xf32> into tensor<1x16x5x5xf32>
    %4 = tensor.empty() : tensor<1x16x5x5xf16>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<1x16x5x5xf32>) outs(%4 : tensor<1x16x5x5xf16>) {
    ^bb0(%in: f32, %out: f16):
      %6 = arith.truncf %in : f32 to f16
      linalg.yield %6 : f16
    } -> tensor<1x16x5x5xf16>
    return %5 : tensor<1x16x5x5xf16>
  }
}
