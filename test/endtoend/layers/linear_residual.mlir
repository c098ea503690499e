// nn.Linear of rows, its input of three dimensions added, and another nn.Linear, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
module {
  func.func @linear_residual(%arg0: tensor<2x24x32xf16>, %arg1: tensor<32x32xf16>, %arg2: tensor<40x32xf16>) -> tensor<2x24x40xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2]] : tensor<2x24x32xf16> into tensor<48x32xf16>
    %0 = tensor.empty() : tensor<32x32xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<32x32xf16>) outs(%0 : tensor<32x32xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<48x32xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<48x32xf32>) -> tensor<48x32xf32>
    %3 = linalg.matmul ins(%collapsed, %transposed : tensor<48x32xf16>, tensor<32x32xf16>) outs(%2 : tensor<48x32xf32>) -> tensor<48x32xf32>
    %4 = tensor.empty() : tensor<48x32xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<48x32xf32>) outs(%4 : tensor<48x32xf16>) {
    ^bb0(%in: f32, %out: f16):
      %16 = arith.truncf %in : f32 to f16
      linalg.yield %16 : f16
    } -> tensor<48x32xf16>
    %expanded = tensor.expand_shape %5 [[0, 1], [2]] output_shape [2, 24, 32] : tensor<48x32xf16> into tensor<2x24x32xf16>
    %6 = tensor.empty() : tensor<2x24x32xf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded, %arg0 : tensor<2x24x32xf16>, tensor<2x24x32xf16>) outs(%6 : tensor<2x24x32xf16>) {
    ^bb0(%in: f16, %in_1: f16, %out: f16):
      %16 = arith.addf %in, %in_1 : f16
      linalg.yield %16 : f16
    } -> tensor<2x24x32xf16>
    %8 = tensor.empty() : tensor<32x40xf16>
    %transposed_0 = linalg.transpose ins(%arg2 : tensor<40x32xf16>) outs(%8 : tensor<32x40xf16>) permutation = [1, 0] 
    %9 = tensor.empty() : tensor<2x32x40xf16>
    %10 = linalg.generic {indexing_maps = [#map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_0 : tensor<32x40xf16>) outs(%9 : tensor<2x32x40xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x32x40xf16>
    %11 = tensor.empty() : tensor<2x24x40xf32>
    %12 = linalg.fill ins(%cst : f32) outs(%11 : tensor<2x24x40xf32>) -> tensor<2x24x40xf32>
    %13 = linalg.batch_matmul ins(%7, %10 : tensor<2x24x32xf16>, tensor<2x32x40xf16>) outs(%12 : tensor<2x24x40xf32>) -> tensor<2x24x40xf32>
    %14 = tensor.empty() : tensor<2x24x40xf16>
    %15 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<2x24x40xf32>) outs(%14 : tensor<2x24x40xf16>) {
    ^bb0(%in: f32, %out: f16):
      %16 = arith.truncf %in : f32 to f16
      linalg.yield %16 : f16
    } -> tensor<2x24x40xf16>
    return %15 : tensor<2x24x40xf16>
  }
}
