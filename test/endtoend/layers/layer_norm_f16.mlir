// nn.LayerNorm(40) of f16, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map3 = affine_map<(d0, d1, d2) -> (d2)>
module {
  func.func @layer_norm_f16(%arg0: tensor<2x6x40xf16>, %arg1: tensor<40xf16>, %arg2: tensor<40xf16>) -> tensor<2x6x40xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %cst_0 = arith.constant 1.000000e-05 : f64
    %cst_1 = arith.constant 4.000000e+01 : f16
    %0 = tensor.empty() : tensor<2x6x1xf16>
    %1 = linalg.fill ins(%cst : f16) outs(%0 : tensor<2x6x1xf16>) -> tensor<2x6x1xf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<2x6x40xf16>) outs(%1 : tensor<2x6x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %16 = arith.addf %in, %out : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x1xf16>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%2 : tensor<2x6x1xf16>) outs(%0 : tensor<2x6x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %16 = arith.divf %in, %cst_1 : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x1xf16>
    %4 = tensor.empty() : tensor<2x6x40xf16>
    %collapsed = tensor.collapse_shape %3 [[0], [1, 2]] : tensor<2x6x1xf16> into tensor<2x6xf16>
    %5 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed : tensor<2x6xf16>) outs(%4 : tensor<2x6x40xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x6x40xf16>
    %6 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %5 : tensor<2x6x40xf16>, tensor<2x6x40xf16>) outs(%4 : tensor<2x6x40xf16>) {
    ^bb0(%in: f16, %in_3: f16, %out: f16):
      %16 = arith.subf %in, %in_3 : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x40xf16>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %6 : tensor<2x6x40xf16>, tensor<2x6x40xf16>) outs(%4 : tensor<2x6x40xf16>) {
    ^bb0(%in: f16, %in_3: f16, %out: f16):
      %16 = arith.mulf %in, %in_3 : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x40xf16>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%7 : tensor<2x6x40xf16>) outs(%1 : tensor<2x6x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %16 = arith.addf %in, %out : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x1xf16>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<2x6x1xf16>) outs(%0 : tensor<2x6x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %16 = arith.divf %in, %cst_1 : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x1xf16>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<2x6x1xf16>) outs(%0 : tensor<2x6x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %16 = arith.truncf %cst_0 : f64 to f16
      %17 = arith.addf %in, %16 : f16
      linalg.yield %17 : f16
    } -> tensor<2x6x1xf16>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<2x6x1xf16>) outs(%0 : tensor<2x6x1xf16>) {
    ^bb0(%in: f16, %out: f16):
      %16 = math.rsqrt %in : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x1xf16>
    %collapsed_2 = tensor.collapse_shape %11 [[0], [1, 2]] : tensor<2x6x1xf16> into tensor<2x6xf16>
    %12 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_2 : tensor<2x6xf16>) outs(%4 : tensor<2x6x40xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x6x40xf16>
    %13 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %12 : tensor<2x6x40xf16>, tensor<2x6x40xf16>) outs(%4 : tensor<2x6x40xf16>) {
    ^bb0(%in: f16, %in_3: f16, %out: f16):
      %16 = arith.mulf %in, %in_3 : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x40xf16>
    %14 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %arg1 : tensor<2x6x40xf16>, tensor<40xf16>) outs(%4 : tensor<2x6x40xf16>) {
    ^bb0(%in: f16, %in_3: f16, %out: f16):
      %16 = arith.mulf %in, %in_3 : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x40xf16>
    %15 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %arg2 : tensor<2x6x40xf16>, tensor<40xf16>) outs(%4 : tensor<2x6x40xf16>) {
    ^bb0(%in: f16, %in_3: f16, %out: f16):
      %16 = arith.addf %in, %in_3 : f16
      linalg.yield %16 : f16
    } -> tensor<2x6x40xf16>
    return %15 : tensor<2x6x40xf16>
  }
}
