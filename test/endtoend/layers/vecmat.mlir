// x @ b, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @vecmat(%arg0: tensor<16xf16>, %arg1: tensor<16x24xf16>) -> tensor<24xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg0 [[0, 1]] output_shape [1, 16] : tensor<16xf16> into tensor<1x16xf16>
    %0 = tensor.empty() : tensor<1x24xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x24xf32>) -> tensor<1x24xf32>
    %2 = linalg.matmul ins(%expanded, %arg1 : tensor<1x16xf16>, tensor<16x24xf16>) outs(%1 : tensor<1x24xf32>) -> tensor<1x24xf32>
    %3 = tensor.empty() : tensor<1x24xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<1x24xf32>) outs(%3 : tensor<1x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %5 = arith.truncf %in : f32 to f16
      linalg.yield %5 : f16
    } -> tensor<1x24xf16>
    %collapsed = tensor.collapse_shape %4 [[0, 1]] : tensor<1x24xf16> into tensor<24xf16>
    return %collapsed : tensor<24xf16>
  }
}
