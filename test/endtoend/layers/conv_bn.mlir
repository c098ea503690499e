// max_pool2d(relu(batch_norm(conv2d(x, w, None, 1, 1))), 3, 2, 1), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, 0, 0)>
module {
  func.func @conv_bn(%arg0: tensor<1x8x9x9xf16>, %arg1: tensor<16x8x3x3xf16>, %arg2: tensor<16xf16>, %arg3: tensor<16xf16>, %arg4: tensor<16xf16>, %arg5: tensor<16xf16>) -> tensor<1x16x5x5xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 0xFC00 : f16
    %cst_2 = arith.constant 1.000000e-05 : f64
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg6: index, %arg7: index, %arg8: index, %arg9: index):
      tensor.yield %cst : f16
    } : tensor<1x8x9x9xf16> to tensor<1x8x11x11xf16>
    %0 = tensor.empty() : tensor<1x16x9x9xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<1x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%1 : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
    %3 = tensor.empty() : tensor<1x16x9x9xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x16x9x9xf32>) outs(%3 : tensor<1x16x9x9xf16>) {
    ^bb0(%in: f32, %out: f16):
      %24 = arith.truncf %in : f32 to f16
      linalg.yield %24 : f16
    } -> tensor<1x16x9x9xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x16x9x9xf16>) outs(%0 : tensor<1x16x9x9xf32>) {
    ^bb0(%in: f16, %out: f32):
      %24 = arith.extf %in : f16 to f32
      linalg.yield %24 : f32
    } -> tensor<1x16x9x9xf32>
    %6 = tensor.empty() : tensor<16xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg4 : tensor<16xf16>) outs(%6 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %24 = arith.extf %in : f16 to f32
      linalg.yield %24 : f32
    } -> tensor<16xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg5 : tensor<16xf16>) outs(%6 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %24 = arith.extf %in : f16 to f32
      linalg.yield %24 : f32
    } -> tensor<16xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg2 : tensor<16xf16>) outs(%6 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %24 = arith.extf %in : f16 to f32
      linalg.yield %24 : f32
    } -> tensor<16xf32>
    %10 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg3 : tensor<16xf16>) outs(%6 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %24 = arith.extf %in : f16 to f32
      linalg.yield %24 : f32
    } -> tensor<16xf32>
    %expanded = tensor.expand_shape %7 [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
    %expanded_3 = tensor.expand_shape %8 [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
    %11 = tensor.empty() : tensor<1x16x1x1xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_3 : tensor<1x16x1x1xf32>) outs(%11 : tensor<1x16x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.truncf %cst_2 : f64 to f32
      %25 = arith.addf %in, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<1x16x1x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12 : tensor<1x16x1x1xf32>) outs(%11 : tensor<1x16x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = math.rsqrt %in : f32
      linalg.yield %24 : f32
    } -> tensor<1x16x1x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %expanded : tensor<1x16x9x9xf32>, tensor<1x16x1x1xf32>) outs(%0 : tensor<1x16x9x9xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %24 = arith.subf %in, %in_7 : f32
      linalg.yield %24 : f32
    } -> tensor<1x16x9x9xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14, %13 : tensor<1x16x9x9xf32>, tensor<1x16x1x1xf32>) outs(%0 : tensor<1x16x9x9xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %24 = arith.mulf %in, %in_7 : f32
      linalg.yield %24 : f32
    } -> tensor<1x16x9x9xf32>
    %expanded_4 = tensor.expand_shape %9 [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15, %expanded_4 : tensor<1x16x9x9xf32>, tensor<1x16x1x1xf32>) outs(%0 : tensor<1x16x9x9xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %24 = arith.mulf %in, %in_7 : f32
      linalg.yield %24 : f32
    } -> tensor<1x16x9x9xf32>
    %expanded_5 = tensor.expand_shape %10 [[0, 1, 2, 3]] output_shape [1, 16, 1, 1] : tensor<16xf32> into tensor<1x16x1x1xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %expanded_5 : tensor<1x16x9x9xf32>, tensor<1x16x1x1xf32>) outs(%0 : tensor<1x16x9x9xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %24 = arith.addf %in, %in_7 : f32
      linalg.yield %24 : f32
    } -> tensor<1x16x9x9xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<1x16x9x9xf32>) outs(%3 : tensor<1x16x9x9xf16>) {
    ^bb0(%in: f32, %out: f16):
      %24 = arith.truncf %in : f32 to f16
      linalg.yield %24 : f16
    } -> tensor<1x16x9x9xf16>
    %19 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<1x16x9x9xf16>) outs(%3 : tensor<1x16x9x9xf16>) {
    ^bb0(%in: f16, %out: f16):
      %24 = arith.cmpf ugt, %in, %cst : f16
      %25 = arith.select %24, %in, %cst : f16
      linalg.yield %25 : f16
    } -> tensor<1x16x9x9xf16>
    %padded_6 = tensor.pad %19 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg6: index, %arg7: index, %arg8: index, %arg9: index):
      tensor.yield %cst_1 : f16
    } : tensor<1x16x9x9xf16> to tensor<1x16x11x11xf16>
    %20 = tensor.empty() : tensor<1x16x5x5xf16>
    %21 = linalg.fill ins(%cst_1 : f16) outs(%20 : tensor<1x16x5x5xf16>) -> tensor<1x16x5x5xf16>
    %22 = tensor.empty() : tensor<3x3xf16>
    %23 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded_6, %22 : tensor<1x16x11x11xf16>, tensor<3x3xf16>) outs(%21 : tensor<1x16x5x5xf16>) -> tensor<1x16x5x5xf16>
    return %23 : tensor<1x16x5x5xf16>
  }
}
