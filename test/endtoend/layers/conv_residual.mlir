// relu(nn.Conv2d(x) + r), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @conv_residual(%arg0: tensor<1x8x9x9xf16>, %arg1: tensor<1x16x9x9xf16>, %arg2: tensor<16x8x3x3xf16>, %arg3: tensor<16xf16>) -> tensor<1x16x9x9xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg4: index, %arg5: index, %arg6: index, %arg7: index):
      tensor.yield %cst : f16
    } : tensor<1x8x9x9xf16> to tensor<1x8x11x11xf16>
    %0 = tensor.empty() : tensor<1x16x9x9xf32>
    %1 = tensor.empty() : tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg3 : tensor<16xf16>) outs(%1 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %8 = arith.extf %in : f16 to f32
      linalg.yield %8 : f32
    } -> tensor<16xf32>
    %broadcasted = linalg.broadcast ins(%2 : tensor<16xf32>) outs(%0 : tensor<1x16x9x9xf32>) dimensions = [0, 2, 3] 
    %3 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg2 : tensor<1x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%broadcasted : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
    %4 = tensor.empty() : tensor<1x16x9x9xf16>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<1x16x9x9xf32>) outs(%4 : tensor<1x16x9x9xf16>) {
    ^bb0(%in: f32, %out: f16):
      %8 = arith.truncf %in : f32 to f16
      linalg.yield %8 : f16
    } -> tensor<1x16x9x9xf16>
    %6 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %arg1 : tensor<1x16x9x9xf16>, tensor<1x16x9x9xf16>) outs(%4 : tensor<1x16x9x9xf16>) {
    ^bb0(%in: f16, %in_0: f16, %out: f16):
      %8 = arith.addf %in, %in_0 : f16
      linalg.yield %8 : f16
    } -> tensor<1x16x9x9xf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6 : tensor<1x16x9x9xf16>) outs(%4 : tensor<1x16x9x9xf16>) {
    ^bb0(%in: f16, %out: f16):
      %8 = arith.cmpf ugt, %in, %cst : f16
      %9 = arith.select %8, %in, %cst : f16
      linalg.yield %9 : f16
    } -> tensor<1x16x9x9xf16>
    return %7 : tensor<1x16x9x9xf16>
  }
}
