// x + linear(gelu(linear(layer_norm(x)))), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @block(%arg0: tensor<40x32xf32>, %arg1: tensor<32xf32>, %arg2: tensor<32xf32>, %arg3: tensor<64x32xf32>, %arg4: tensor<64xf32>, %arg5: tensor<32x64xf32>, %arg6: tensor<32xf32>) -> tensor<40x32xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %cst_1 = arith.constant 5.000000e-01 : f32
    %cst_2 = arith.constant 1.000000e-05 : f64
    %cst_3 = arith.constant 3.200000e+01 : f32
    %cst_4 = arith.constant 1.41421354 : f32
    %0 = tensor.empty() : tensor<40x1xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<40x1xf32>) -> tensor<40x1xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%arg0 : tensor<40x32xf32>) outs(%1 : tensor<40x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.addf %in, %out : f32
      linalg.yield %27 : f32
    } -> tensor<40x1xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<40x1xf32>) outs(%0 : tensor<40x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.divf %in, %cst_3 : f32
      linalg.yield %27 : f32
    } -> tensor<40x1xf32>
    %4 = tensor.empty() : tensor<40x32xf32>
    %collapsed = tensor.collapse_shape %3 [[0, 1]] : tensor<40x1xf32> into tensor<40xf32>
    %5 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%collapsed : tensor<40xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<40x32xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %5 : tensor<40x32xf32>, tensor<40x32xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %27 = arith.subf %in, %in_7 : f32
      linalg.yield %27 : f32
    } -> tensor<40x32xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %6 : tensor<40x32xf32>, tensor<40x32xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %27 = arith.mulf %in, %in_7 : f32
      linalg.yield %27 : f32
    } -> tensor<40x32xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]} ins(%7 : tensor<40x32xf32>) outs(%1 : tensor<40x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.addf %in, %out : f32
      linalg.yield %27 : f32
    } -> tensor<40x1xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<40x1xf32>) outs(%0 : tensor<40x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.divf %in, %cst_3 : f32
      linalg.yield %27 : f32
    } -> tensor<40x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<40x1xf32>) outs(%0 : tensor<40x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.truncf %cst_2 : f64 to f32
      %28 = arith.addf %in, %27 : f32
      linalg.yield %28 : f32
    } -> tensor<40x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<40x1xf32>) outs(%0 : tensor<40x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = math.rsqrt %in : f32
      linalg.yield %27 : f32
    } -> tensor<40x1xf32>
    %collapsed_5 = tensor.collapse_shape %11 [[0, 1]] : tensor<40x1xf32> into tensor<40xf32>
    %12 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel"]} ins(%collapsed_5 : tensor<40xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<40x32xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%6, %12 : tensor<40x32xf32>, tensor<40x32xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %27 = arith.mulf %in, %in_7 : f32
      linalg.yield %27 : f32
    } -> tensor<40x32xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %arg1 : tensor<40x32xf32>, tensor<32xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %27 = arith.mulf %in, %in_7 : f32
      linalg.yield %27 : f32
    } -> tensor<40x32xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%14, %arg2 : tensor<40x32xf32>, tensor<32xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %27 = arith.addf %in, %in_7 : f32
      linalg.yield %27 : f32
    } -> tensor<40x32xf32>
    %16 = tensor.empty() : tensor<32x64xf32>
    %transposed = linalg.transpose ins(%arg3 : tensor<64x32xf32>) outs(%16 : tensor<32x64xf32>) permutation = [1, 0] 
    %17 = tensor.empty() : tensor<40x64xf32>
    %18 = linalg.fill ins(%cst : f32) outs(%17 : tensor<40x64xf32>) -> tensor<40x64xf32>
    %19 = linalg.matmul ins(%15, %transposed : tensor<40x32xf32>, tensor<32x64xf32>) outs(%18 : tensor<40x64xf32>) -> tensor<40x64xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%19, %arg4 : tensor<40x64xf32>, tensor<64xf32>) outs(%17 : tensor<40x64xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %27 = arith.addf %in, %in_7 : f32
      linalg.yield %27 : f32
    } -> tensor<40x64xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%20 : tensor<40x64xf32>) outs(%17 : tensor<40x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %27 = arith.divf %in, %cst_4 : f32
      %28 = math.erf %27 : f32
      %29 = arith.addf %28, %cst_0 : f32
      %30 = arith.mulf %29, %cst_1 : f32
      %31 = arith.mulf %in, %30 : f32
      linalg.yield %31 : f32
    } -> tensor<40x64xf32>
    %22 = tensor.empty() : tensor<64x32xf32>
    %transposed_6 = linalg.transpose ins(%arg5 : tensor<32x64xf32>) outs(%22 : tensor<64x32xf32>) permutation = [1, 0] 
    %23 = linalg.fill ins(%cst : f32) outs(%4 : tensor<40x32xf32>) -> tensor<40x32xf32>
    %24 = linalg.matmul ins(%21, %transposed_6 : tensor<40x64xf32>, tensor<64x32xf32>) outs(%23 : tensor<40x32xf32>) -> tensor<40x32xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel"]} ins(%24, %arg6 : tensor<40x32xf32>, tensor<32xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %27 = arith.addf %in, %in_7 : f32
      linalg.yield %27 : f32
    } -> tensor<40x32xf32>
    %26 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0, %25 : tensor<40x32xf32>, tensor<40x32xf32>) outs(%4 : tensor<40x32xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %27 = arith.addf %in, %in_7 : f32
      linalg.yield %27 : f32
    } -> tensor<40x32xf32>
    return %26 : tensor<40x32xf32>
  }
}
