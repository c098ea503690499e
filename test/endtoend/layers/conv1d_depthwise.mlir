// nn.Conv1d(16, 16, 3, groups=16), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @conv1d_depthwise(%arg0: tensor<1x16x20xf16>, %arg1: tensor<16x1x3xf16>, %arg2: tensor<16xf16>) -> tensor<1x16x18xf16> {
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [1, 16, 20, 1] : tensor<1x16x20xf16> into tensor<1x16x20x1xf16>
    %expanded_0 = tensor.expand_shape %arg1 [[0], [1], [2, 3]] output_shape [16, 1, 3, 1] : tensor<16x1x3xf16> into tensor<16x1x3x1xf16>
    %0 = tensor.empty() : tensor<1x16x18x1xf32>
    %1 = tensor.empty() : tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg2 : tensor<16xf16>) outs(%1 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %6 = arith.extf %in : f16 to f32
      linalg.yield %6 : f32
    } -> tensor<16xf32>
    %broadcasted = linalg.broadcast ins(%2 : tensor<16xf32>) outs(%0 : tensor<1x16x18x1xf32>) dimensions = [0, 2, 3] 
    %collapsed = tensor.collapse_shape %expanded_0 [[0, 1], [2], [3]] : tensor<16x1x3x1xf16> into tensor<16x3x1xf16>
    %3 = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%expanded, %collapsed : tensor<1x16x20x1xf16>, tensor<16x3x1xf16>) outs(%broadcasted : tensor<1x16x18x1xf32>) -> tensor<1x16x18x1xf32>
    %4 = tensor.empty() : tensor<1x16x18x1xf16>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<1x16x18x1xf32>) outs(%4 : tensor<1x16x18x1xf16>) {
    ^bb0(%in: f32, %out: f16):
      %6 = arith.truncf %in : f32 to f16
      linalg.yield %6 : f16
    } -> tensor<1x16x18x1xf16>
    %collapsed_1 = tensor.collapse_shape %5 [[0], [1], [2, 3]] : tensor<1x16x18x1xf16> into tensor<1x16x18xf16>
    return %collapsed_1 : tensor<1x16x18xf16>
  }
}
