// relu(nn.Conv2d(16, 16, 3, padding=1, groups=4)), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @conv_thin_groups(%arg0: tensor<1x16x7x7xf16>, %arg1: tensor<16x4x3x3xf16>, %arg2: tensor<16xf16>) -> tensor<1x16x7x7xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f16
    } : tensor<1x16x7x7xf16> to tensor<1x16x9x9xf16>
    %0 = tensor.empty() : tensor<1x16x7x7xf32>
    %1 = tensor.empty() : tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg2 : tensor<16xf16>) outs(%1 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %7 = arith.extf %in : f16 to f32
      linalg.yield %7 : f32
    } -> tensor<16xf32>
    %broadcasted = linalg.broadcast ins(%2 : tensor<16xf32>) outs(%0 : tensor<1x16x7x7xf32>) dimensions = [0, 2, 3] 
    %expanded = tensor.expand_shape %padded [[0], [1, 2], [3], [4]] output_shape [1, 4, 4, 9, 9] : tensor<1x16x9x9xf16> into tensor<1x4x4x9x9xf16>
    %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [4, 4, 4, 3, 3] : tensor<16x4x3x3xf16> into tensor<4x4x4x3x3xf16>
    %expanded_1 = tensor.expand_shape %broadcasted [[0], [1, 2], [3], [4]] output_shape [1, 4, 4, 7, 7] : tensor<1x16x7x7xf32> into tensor<1x4x4x7x7xf32>
    %3 = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%expanded, %expanded_0 : tensor<1x4x4x9x9xf16>, tensor<4x4x4x3x3xf16>) outs(%expanded_1 : tensor<1x4x4x7x7xf32>) -> tensor<1x4x4x7x7xf32>
    %collapsed = tensor.collapse_shape %3 [[0], [1, 2], [3], [4]] : tensor<1x4x4x7x7xf32> into tensor<1x16x7x7xf32>
    %4 = tensor.empty() : tensor<1x16x7x7xf16>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<1x16x7x7xf32>) outs(%4 : tensor<1x16x7x7xf16>) {
    ^bb0(%in: f32, %out: f16):
      %7 = arith.truncf %in : f32 to f16
      linalg.yield %7 : f16
    } -> tensor<1x16x7x7xf16>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<1x16x7x7xf16>) outs(%4 : tensor<1x16x7x7xf16>) {
    ^bb0(%in: f16, %out: f16):
      %7 = arith.cmpf ugt, %in, %cst : f16
      %8 = arith.select %7, %in, %cst : f16
      linalg.yield %8 : f16
    } -> tensor<1x16x7x7xf16>
    return %6 : tensor<1x16x7x7xf16>
  }
}
