// nn.Linear, relu, nn.Linear of [2, 20, 32], as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
module {
  func.func @mlp_3d_relu(%arg0: tensor<2x20x32xf16>, %arg1: tensor<48x32xf16>, %arg2: tensor<48xf16>, %arg3: tensor<24x48xf16>, %arg4: tensor<24xf16>) -> tensor<2x20x24xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f16
    %0 = tensor.empty() : tensor<32x48xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<48x32xf16>) outs(%0 : tensor<32x48xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<2x32x48xf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<32x48xf16>) outs(%1 : tensor<2x32x48xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x32x48xf16>
    %3 = tensor.empty() : tensor<2x20x48xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
    %5 = linalg.batch_matmul ins(%arg0, %2 : tensor<2x20x32xf16>, tensor<2x32x48xf16>) outs(%4 : tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
    %6 = tensor.empty() : tensor<2x20x48xf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x20x48xf32>) outs(%6 : tensor<2x20x48xf16>) {
    ^bb0(%in: f32, %out: f16):
      %19 = arith.truncf %in : f32 to f16
      linalg.yield %19 : f16
    } -> tensor<2x20x48xf16>
    %8 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%7, %arg2 : tensor<2x20x48xf16>, tensor<48xf16>) outs(%6 : tensor<2x20x48xf16>) {
    ^bb0(%in: f16, %in_2: f16, %out: f16):
      %19 = arith.addf %in, %in_2 : f16
      linalg.yield %19 : f16
    } -> tensor<2x20x48xf16>
    %9 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<2x20x48xf16>) outs(%6 : tensor<2x20x48xf16>) {
    ^bb0(%in: f16, %out: f16):
      %19 = arith.cmpf ugt, %in, %cst_0 : f16
      %20 = arith.select %19, %in, %cst_0 : f16
      linalg.yield %20 : f16
    } -> tensor<2x20x48xf16>
    %10 = tensor.empty() : tensor<48x24xf16>
    %transposed_1 = linalg.transpose ins(%arg3 : tensor<24x48xf16>) outs(%10 : tensor<48x24xf16>) permutation = [1, 0] 
    %11 = tensor.empty() : tensor<2x48x24xf16>
    %12 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_1 : tensor<48x24xf16>) outs(%11 : tensor<2x48x24xf16>) {
    ^bb0(%in: f16, %out: f16):
      linalg.yield %in : f16
    } -> tensor<2x48x24xf16>
    %13 = tensor.empty() : tensor<2x20x24xf32>
    %14 = linalg.fill ins(%cst : f32) outs(%13 : tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
    %15 = linalg.batch_matmul ins(%9, %12 : tensor<2x20x48xf16>, tensor<2x48x24xf16>) outs(%14 : tensor<2x20x24xf32>) -> tensor<2x20x24xf32>
    %16 = tensor.empty() : tensor<2x20x24xf16>
    %17 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x20x24xf32>) outs(%16 : tensor<2x20x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %19 = arith.truncf %in : f32 to f16
      linalg.yield %19 : f16
    } -> tensor<2x20x24xf16>
    %18 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17, %arg4 : tensor<2x20x24xf16>, tensor<24xf16>) outs(%16 : tensor<2x20x24xf16>) {
    ^bb0(%in: f16, %in_2: f16, %out: f16):
      %19 = arith.addf %in, %in_2 : f16
      linalg.yield %19 : f16
    } -> tensor<2x20x24xf16>
    return %18 : tensor<2x20x24xf16>
  }
}
