// relu(nn.Conv1d(16, 32, 3, dilation=2, stride=2)) in bf16, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @conv1d_dilated_bf16_relu(%arg0: tensor<1x16x37xbf16>, %arg1: tensor<32x16x3xbf16>, %arg2: tensor<32xbf16>) -> tensor<1x32x17xbf16> {
    %cst = arith.constant 0.000000e+00 : bf16
    %0 = tensor.empty() : tensor<1x32x17xf32>
    %1 = tensor.empty() : tensor<32xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg2 : tensor<32xbf16>) outs(%1 : tensor<32xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %7 = arith.extf %in : bf16 to f32
      linalg.yield %7 : f32
    } -> tensor<32xf32>
    %broadcasted = linalg.broadcast ins(%2 : tensor<32xf32>) outs(%0 : tensor<1x32x17xf32>) dimensions = [0, 2] 
    %3 = linalg.conv_1d_ncw_fcw {dilations = dense<2> : vector<1xi64>, strides = dense<2> : vector<1xi64>} ins(%arg0, %arg1 : tensor<1x16x37xbf16>, tensor<32x16x3xbf16>) outs(%broadcasted : tensor<1x32x17xf32>) -> tensor<1x32x17xf32>
    %4 = tensor.empty() : tensor<1x32x17xbf16>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<1x32x17xf32>) outs(%4 : tensor<1x32x17xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %7 = arith.truncf %in : f32 to bf16
      linalg.yield %7 : bf16
    } -> tensor<1x32x17xbf16>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<1x32x17xbf16>) outs(%4 : tensor<1x32x17xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %7 = arith.cmpf ugt, %in, %cst : bf16
      %8 = arith.select %7, %in, %cst : bf16
      linalg.yield %8 : bf16
    } -> tensor<1x32x17xbf16>
    return %6 : tensor<1x32x17xbf16>
  }
}
