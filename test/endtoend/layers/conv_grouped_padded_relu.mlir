// relu(nn.Conv2d(32, 64, 3, padding=1, stride=2, groups=2)) in bf16, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @conv_grouped_padded_relu(%arg0: tensor<2x32x9x9xbf16>, %arg1: tensor<64x16x3x3xbf16>, %arg2: tensor<64xbf16>) -> tensor<2x64x5x5xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : bf16
    } : tensor<2x32x9x9xbf16> to tensor<2x32x11x11xbf16>
    %0 = tensor.empty() : tensor<2x64x5x5xf32>
    %1 = tensor.empty() : tensor<64xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg2 : tensor<64xbf16>) outs(%1 : tensor<64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %7 = arith.extf %in : bf16 to f32
      linalg.yield %7 : f32
    } -> tensor<64xf32>
    %broadcasted = linalg.broadcast ins(%2 : tensor<64xf32>) outs(%0 : tensor<2x64x5x5xf32>) dimensions = [0, 2, 3] 
    %expanded = tensor.expand_shape %padded [[0], [1, 2], [3], [4]] output_shape [2, 2, 16, 11, 11] : tensor<2x32x11x11xbf16> into tensor<2x2x16x11x11xbf16>
    %expanded_0 = tensor.expand_shape %arg1 [[0, 1], [2], [3], [4]] output_shape [2, 32, 16, 3, 3] : tensor<64x16x3x3xbf16> into tensor<2x32x16x3x3xbf16>
    %expanded_1 = tensor.expand_shape %broadcasted [[0], [1, 2], [3], [4]] output_shape [2, 2, 32, 5, 5] : tensor<2x64x5x5xf32> into tensor<2x2x32x5x5xf32>
    %3 = linalg.conv_2d_ngchw_gfchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%expanded, %expanded_0 : tensor<2x2x16x11x11xbf16>, tensor<2x32x16x3x3xbf16>) outs(%expanded_1 : tensor<2x2x32x5x5xf32>) -> tensor<2x2x32x5x5xf32>
    %collapsed = tensor.collapse_shape %3 [[0], [1, 2], [3], [4]] : tensor<2x2x32x5x5xf32> into tensor<2x64x5x5xf32>
    %4 = tensor.empty() : tensor<2x64x5x5xbf16>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%collapsed : tensor<2x64x5x5xf32>) outs(%4 : tensor<2x64x5x5xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %7 = arith.truncf %in : f32 to bf16
      linalg.yield %7 : bf16
    } -> tensor<2x64x5x5xbf16>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<2x64x5x5xbf16>) outs(%4 : tensor<2x64x5x5xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %7 = arith.cmpf ugt, %in, %cst : bf16
      %8 = arith.select %7, %in, %cst : bf16
      linalg.yield %8 : bf16
    } -> tensor<2x64x5x5xbf16>
    return %6 : tensor<2x64x5x5xbf16>
  }
}
