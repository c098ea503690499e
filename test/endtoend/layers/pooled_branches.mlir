// relu(conv3x3), max pooling, two conv1x1 of it, relu of their sum, conv1x1, as torch-mlir imports them.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
module {
  func.func @pooled_branches(%arg0: tensor<2x8x12x12xf16>, %arg1: tensor<16x8x3x3xf16>, %arg2: tensor<32x16x1x1xf16>, %arg3: tensor<32xf16>, %arg4: tensor<32x16x1x1xf16>, %arg5: tensor<32xf16>, %arg6: tensor<16x32x1x1xf16>) -> tensor<2x16x6x6xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 0xFC00 : f16
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst : f16
    } : tensor<2x8x12x12xf16> to tensor<2x8x14x14xf16>
    %0 = tensor.empty() : tensor<2x16x12x12xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<2x16x12x12xf32>) -> tensor<2x16x12x12xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<2x8x14x14xf16>, tensor<16x8x3x3xf16>) outs(%1 : tensor<2x16x12x12xf32>) -> tensor<2x16x12x12xf32>
    %3 = tensor.empty() : tensor<2x16x12x12xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x16x12x12xf32>) outs(%3 : tensor<2x16x12x12xf16>) {
    ^bb0(%in: f32, %out: f16):
      %25 = arith.truncf %in : f32 to f16
      linalg.yield %25 : f16
    } -> tensor<2x16x12x12xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<2x16x12x12xf16>) outs(%3 : tensor<2x16x12x12xf16>) {
    ^bb0(%in: f16, %out: f16):
      %25 = arith.cmpf ugt, %in, %cst : f16
      %26 = arith.select %25, %in, %cst : f16
      linalg.yield %26 : f16
    } -> tensor<2x16x12x12xf16>
    %padded_2 = tensor.pad %5 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg7: index, %arg8: index, %arg9: index, %arg10: index):
      tensor.yield %cst_1 : f16
    } : tensor<2x16x12x12xf16> to tensor<2x16x14x14xf16>
    %6 = tensor.empty() : tensor<2x16x6x6xf16>
    %7 = linalg.fill ins(%cst_1 : f16) outs(%6 : tensor<2x16x6x6xf16>) -> tensor<2x16x6x6xf16>
    %8 = tensor.empty() : tensor<3x3xf16>
    %9 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_2, %8 : tensor<2x16x14x14xf16>, tensor<3x3xf16>) outs(%7 : tensor<2x16x6x6xf16>) -> tensor<2x16x6x6xf16>
    %10 = tensor.empty() : tensor<2x32x6x6xf32>
    %11 = tensor.empty() : tensor<32xf32>
    %12 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg3 : tensor<32xf16>) outs(%11 : tensor<32xf32>) {
    ^bb0(%in: f16, %out: f32):
      %25 = arith.extf %in : f16 to f32
      linalg.yield %25 : f32
    } -> tensor<32xf32>
    %broadcasted = linalg.broadcast ins(%12 : tensor<32xf32>) outs(%10 : tensor<2x32x6x6xf32>) dimensions = [0, 2, 3] 
    %13 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%9, %arg2 : tensor<2x16x6x6xf16>, tensor<32x16x1x1xf16>) outs(%broadcasted : tensor<2x32x6x6xf32>) -> tensor<2x32x6x6xf32>
    %14 = tensor.empty() : tensor<2x32x6x6xf16>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%13 : tensor<2x32x6x6xf32>) outs(%14 : tensor<2x32x6x6xf16>) {
    ^bb0(%in: f32, %out: f16):
      %25 = arith.truncf %in : f32 to f16
      linalg.yield %25 : f16
    } -> tensor<2x32x6x6xf16>
    %16 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg5 : tensor<32xf16>) outs(%11 : tensor<32xf32>) {
    ^bb0(%in: f16, %out: f32):
      %25 = arith.extf %in : f16 to f32
      linalg.yield %25 : f32
    } -> tensor<32xf32>
    %broadcasted_3 = linalg.broadcast ins(%16 : tensor<32xf32>) outs(%10 : tensor<2x32x6x6xf32>) dimensions = [0, 2, 3] 
    %17 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%9, %arg4 : tensor<2x16x6x6xf16>, tensor<32x16x1x1xf16>) outs(%broadcasted_3 : tensor<2x32x6x6xf32>) -> tensor<2x32x6x6xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<2x32x6x6xf32>) outs(%14 : tensor<2x32x6x6xf16>) {
    ^bb0(%in: f32, %out: f16):
      %25 = arith.truncf %in : f32 to f16
      linalg.yield %25 : f16
    } -> tensor<2x32x6x6xf16>
    %19 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %18 : tensor<2x32x6x6xf16>, tensor<2x32x6x6xf16>) outs(%14 : tensor<2x32x6x6xf16>) {
    ^bb0(%in: f16, %in_4: f16, %out: f16):
      %25 = arith.addf %in, %in_4 : f16
      linalg.yield %25 : f16
    } -> tensor<2x32x6x6xf16>
    %20 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<2x32x6x6xf16>) outs(%14 : tensor<2x32x6x6xf16>) {
    ^bb0(%in: f16, %out: f16):
      %25 = arith.cmpf ugt, %in, %cst : f16
      %26 = arith.select %25, %in, %cst : f16
      linalg.yield %26 : f16
    } -> tensor<2x32x6x6xf16>
    %21 = tensor.empty() : tensor<2x16x6x6xf32>
    %22 = linalg.fill ins(%cst_0 : f32) outs(%21 : tensor<2x16x6x6xf32>) -> tensor<2x16x6x6xf32>
    %23 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%20, %arg6 : tensor<2x32x6x6xf16>, tensor<16x32x1x1xf16>) outs(%22 : tensor<2x16x6x6xf32>) -> tensor<2x16x6x6xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%23 : tensor<2x16x6x6xf32>) outs(%6 : tensor<2x16x6x6xf16>) {
    ^bb0(%in: f32, %out: f16):
      %25 = arith.truncf %in : f32 to f16
      linalg.yield %25 : f16
    } -> tensor<2x16x6x6xf16>
    return %24 : tensor<2x16x6x6xf16>
  }
}
