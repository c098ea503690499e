// torch.einsum('bsk,nk->bsn'), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @einsum(%arg0: tensor<2x20x16xf16>, %arg1: tensor<24x16xf16>) -> tensor<2x20x24xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %expanded = tensor.expand_shape %arg1 [[0], [1, 2, 3]] output_shape [24, 16, 1, 1] : tensor<24x16xf16> into tensor<24x16x1x1xf16>
    %collapsed = tensor.collapse_shape %arg0 [[0, 1], [2]] : tensor<2x20x16xf16> into tensor<40x16xf16>
    %expanded_0 = tensor.expand_shape %collapsed [[0, 1], [2]] output_shape [1, 40, 16] : tensor<40x16xf16> into tensor<1x40x16xf16>
    %0 = tensor.empty() : tensor<16x24x1x1xf16>
    %transposed = linalg.transpose ins(%expanded : tensor<24x16x1x1xf16>) outs(%0 : tensor<16x24x1x1xf16>) permutation = [1, 0, 2, 3] 
    %collapsed_1 = tensor.collapse_shape %transposed [[0], [1, 2, 3]] : tensor<16x24x1x1xf16> into tensor<16x24xf16>
    %expanded_2 = tensor.expand_shape %collapsed_1 [[0, 1], [2]] output_shape [1, 16, 24] : tensor<16x24xf16> into tensor<1x16x24xf16>
    %1 = tensor.empty() : tensor<1x40x24xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<1x40x24xf32>) -> tensor<1x40x24xf32>
    %3 = linalg.batch_matmul ins(%expanded_0, %expanded_2 : tensor<1x40x16xf16>, tensor<1x16x24xf16>) outs(%2 : tensor<1x40x24xf32>) -> tensor<1x40x24xf32>
    %4 = tensor.empty() : tensor<1x40x24xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%3 : tensor<1x40x24xf32>) outs(%4 : tensor<1x40x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %7 = arith.truncf %in : f32 to f16
      linalg.yield %7 : f16
    } -> tensor<1x40x24xf16>
    %collapsed_3 = tensor.collapse_shape %5 [[0, 1], [2]] : tensor<1x40x24xf16> into tensor<40x24xf16>
    %expanded_4 = tensor.expand_shape %collapsed_3 [[0, 1], [2, 3]] output_shape [2, 20, 1, 24] : tensor<40x24xf16> into tensor<2x20x1x24xf16>
    %6 = tensor.empty() : tensor<2x20x24x1xf16>
    %transposed_5 = linalg.transpose ins(%expanded_4 : tensor<2x20x1x24xf16>) outs(%6 : tensor<2x20x24x1xf16>) permutation = [0, 1, 3, 2] 
    %collapsed_6 = tensor.collapse_shape %transposed_5 [[0], [1], [2, 3]] : tensor<2x20x24x1xf16> into tensor<2x20x24xf16>
    return %collapsed_6 : tensor<2x20x24xf16>
  }
}
