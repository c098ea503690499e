// nn.Conv1d(8, 16, 3, padding=1), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @conv1d(%arg0: tensor<2x8x20xf16>, %arg1: tensor<16x8x3xf16>, %arg2: tensor<16xf16>) -> tensor<2x16x20xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %padded = tensor.pad %arg0 low[0, 0, 1] high[0, 0, 1] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      tensor.yield %cst : f16
    } : tensor<2x8x20xf16> to tensor<2x8x22xf16>
    %0 = tensor.empty() : tensor<2x16x20xf32>
    %1 = tensor.empty() : tensor<16xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg2 : tensor<16xf16>) outs(%1 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %6 = arith.extf %in : f16 to f32
      linalg.yield %6 : f32
    } -> tensor<16xf32>
    %broadcasted = linalg.broadcast ins(%2 : tensor<16xf32>) outs(%0 : tensor<2x16x20xf32>) dimensions = [0, 2] 
    %3 = linalg.conv_1d_ncw_fcw {dilations = dense<1> : vector<1xi64>, strides = dense<1> : vector<1xi64>} ins(%padded, %arg1 : tensor<2x8x22xf16>, tensor<16x8x3xf16>) outs(%broadcasted : tensor<2x16x20xf32>) -> tensor<2x16x20xf32>
    %4 = tensor.empty() : tensor<2x16x20xf16>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<2x16x20xf32>) outs(%4 : tensor<2x16x20xf16>) {
    ^bb0(%in: f32, %out: f16):
      %6 = arith.truncf %in : f32 to f16
      linalg.yield %6 : f16
    } -> tensor<2x16x20xf16>
    return %5 : tensor<2x16x20xf16>
  }
}
