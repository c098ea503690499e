// q @ k.transpose(-1, -2) of [2, 3, s, 16], as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @bmm_qk(%arg0: tensor<2x3x20x16xf16>, %arg1: tensor<2x3x24x16xf16>) -> tensor<2x3x20x24xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x3x16x24xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<2x3x24x16xf16>) outs(%0 : tensor<2x3x16x24xf16>) permutation = [0, 1, 3, 2] 
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<2x3x20x16xf16> into tensor<6x20x16xf16>
    %collapsed_0 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<2x3x16x24xf16> into tensor<6x16x24xf16>
    %1 = tensor.empty() : tensor<6x20x24xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<6x20x24xf32>) -> tensor<6x20x24xf32>
    %3 = linalg.batch_matmul ins(%collapsed, %collapsed_0 : tensor<6x20x16xf16>, tensor<6x16x24xf16>) outs(%2 : tensor<6x20x24xf32>) -> tensor<6x20x24xf32>
    %4 = tensor.empty() : tensor<6x20x24xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<6x20x24xf32>) outs(%4 : tensor<6x20x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %6 = arith.truncf %in : f32 to f16
      linalg.yield %6 : f16
    } -> tensor<6x20x24xf16>
    %expanded = tensor.expand_shape %5 [[0, 1], [2], [3]] output_shape [2, 3, 20, 24] : tensor<6x20x24xf16> into tensor<2x3x20x24xf16>
    return %expanded : tensor<2x3x20x24xf16>
  }
}
