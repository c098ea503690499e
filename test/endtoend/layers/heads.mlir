// q @ k.T of heads that lie within rows: views and transposes of [2, s, 48], as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @heads(%arg0: tensor<2x20x48xf16>, %arg1: tensor<2x24x48xf16>) -> tensor<2x3x20x24xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [2, 20, 3, 16] : tensor<2x20x48xf16> into tensor<2x20x3x16xf16>
    %0 = tensor.empty() : tensor<2x3x20x16xf16>
    %transposed = linalg.transpose ins(%expanded : tensor<2x20x3x16xf16>) outs(%0 : tensor<2x3x20x16xf16>) permutation = [0, 2, 1, 3] 
    %expanded_0 = tensor.expand_shape %arg1 [[0], [1], [2, 3]] output_shape [2, 24, 3, 16] : tensor<2x24x48xf16> into tensor<2x24x3x16xf16>
    %1 = tensor.empty() : tensor<2x3x16x24xf16>
    %transposed_1 = linalg.transpose ins(%expanded_0 : tensor<2x24x3x16xf16>) outs(%1 : tensor<2x3x16x24xf16>) permutation = [0, 2, 3, 1] 
    %collapsed = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<2x3x20x16xf16> into tensor<6x20x16xf16>
    %collapsed_2 = tensor.collapse_shape %transposed_1 [[0, 1], [2], [3]] : tensor<2x3x16x24xf16> into tensor<6x16x24xf16>
    %2 = tensor.empty() : tensor<6x20x24xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<6x20x24xf32>) -> tensor<6x20x24xf32>
    %4 = linalg.batch_matmul ins(%collapsed, %collapsed_2 : tensor<6x20x16xf16>, tensor<6x16x24xf16>) outs(%3 : tensor<6x20x24xf32>) -> tensor<6x20x24xf32>
    %5 = tensor.empty() : tensor<6x20x24xf16>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<6x20x24xf32>) outs(%5 : tensor<6x20x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %7 = arith.truncf %in : f32 to f16
      linalg.yield %7 : f16
    } -> tensor<6x20x24xf16>
    %expanded_3 = tensor.expand_shape %6 [[0, 1], [2], [3]] output_shape [2, 3, 20, 24] : tensor<6x20x24xf16> into tensor<2x3x20x24xf16>
    return %expanded_3 : tensor<2x3x20x24xf16>
  }
}
