// nn.Conv2d, relu, nn.Conv2d, relu of 3 x 3, channels first, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @convs_nchw(%arg0: tensor<2x8x6x6xf16>, %arg1: tensor<16x8x3x3xf16>, %arg2: tensor<16xf16>, %arg3: tensor<24x16x3x3xf16>, %arg4: tensor<24xf16>) -> tensor<2x24x6x6xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst : f16
    } : tensor<2x8x6x6xf16> to tensor<2x8x8x8xf16>
    %0 = tensor.empty() : tensor<2x16x6x6xf32>
    %1 = tensor.empty() : tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg2 : tensor<16xf16>) outs(%1 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %14 = arith.extf %in : f16 to f32
      linalg.yield %14 : f32
    } -> tensor<16xf32>
    %broadcasted = linalg.broadcast ins(%2 : tensor<16xf32>) outs(%0 : tensor<2x16x6x6xf32>) dimensions = [0, 2, 3] 
    %3 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<2x8x8x8xf16>, tensor<16x8x3x3xf16>) outs(%broadcasted : tensor<2x16x6x6xf32>) -> tensor<2x16x6x6xf32>
    %4 = tensor.empty() : tensor<2x16x6x6xf16>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2x16x6x6xf32>) outs(%4 : tensor<2x16x6x6xf16>) {
    ^bb0(%in: f32, %out: f16):
      %14 = arith.truncf %in : f32 to f16
      linalg.yield %14 : f16
    } -> tensor<2x16x6x6xf16>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<2x16x6x6xf16>) outs(%4 : tensor<2x16x6x6xf16>) {
    ^bb0(%in: f16, %out: f16):
      %14 = arith.cmpf ugt, %in, %cst : f16
      %15 = arith.select %14, %in, %cst : f16
      linalg.yield %15 : f16
    } -> tensor<2x16x6x6xf16>
    %padded_0 = tensor.pad %6 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg5: index, %arg6: index, %arg7: index, %arg8: index):
      tensor.yield %cst : f16
    } : tensor<2x16x6x6xf16> to tensor<2x16x8x8xf16>
    %7 = tensor.empty() : tensor<2x24x6x6xf32>
    %8 = tensor.empty() : tensor<24xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg4 : tensor<24xf16>) outs(%8 : tensor<24xf32>) {
    ^bb0(%in: f16, %out: f32):
      %14 = arith.extf %in : f16 to f32
      linalg.yield %14 : f32
    } -> tensor<24xf32>
    %broadcasted_1 = linalg.broadcast ins(%9 : tensor<24xf32>) outs(%7 : tensor<2x24x6x6xf32>) dimensions = [0, 2, 3] 
    %10 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded_0, %arg3 : tensor<2x16x8x8xf16>, tensor<24x16x3x3xf16>) outs(%broadcasted_1 : tensor<2x24x6x6xf32>) -> tensor<2x24x6x6xf32>
    %11 = tensor.empty() : tensor<2x24x6x6xf16>
    %12 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%10 : tensor<2x24x6x6xf32>) outs(%11 : tensor<2x24x6x6xf16>) {
    ^bb0(%in: f32, %out: f16):
      %14 = arith.truncf %in : f32 to f16
      linalg.yield %14 : f16
    } -> tensor<2x24x6x6xf16>
    %13 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<2x24x6x6xf16>) outs(%11 : tensor<2x24x6x6xf16>) {
    ^bb0(%in: f16, %out: f16):
      %14 = arith.cmpf ugt, %in, %cst : f16
      %15 = arith.select %14, %in, %cst : f16
      linalg.yield %15 : f16
    } -> tensor<2x24x6x6xf16>
    return %13 : tensor<2x24x6x6xf16>
  }
}
