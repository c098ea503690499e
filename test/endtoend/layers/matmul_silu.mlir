// silu(a @ b), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @matmul_silu(%arg0: tensor<40x16xf16>, %arg1: tensor<16x24xf16>) -> tensor<40x24xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e+00 : f32
    %0 = tensor.empty() : tensor<40x24xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<40x24xf32>) -> tensor<40x24xf32>
    %2 = linalg.matmul ins(%arg0, %arg1 : tensor<40x16xf16>, tensor<16x24xf16>) outs(%1 : tensor<40x24xf32>) -> tensor<40x24xf32>
    %3 = tensor.empty() : tensor<40x24xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<40x24xf32>) outs(%3 : tensor<40x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %9 = arith.truncf %in : f32 to f16
      linalg.yield %9 : f16
    } -> tensor<40x24xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<40x24xf16>) outs(%0 : tensor<40x24xf32>) {
    ^bb0(%in: f16, %out: f32):
      %9 = arith.extf %in : f16 to f32
      linalg.yield %9 : f32
    } -> tensor<40x24xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<40x24xf32>) outs(%0 : tensor<40x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.negf %in : f32
      %10 = math.exp %9 : f32
      %11 = arith.addf %10, %cst_0 : f32
      %12 = arith.divf %cst_0, %11 : f32
      linalg.yield %12 : f32
    } -> tensor<40x24xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%5, %6 : tensor<40x24xf32>, tensor<40x24xf32>) outs(%0 : tensor<40x24xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %9 = arith.mulf %in, %in_1 : f32
      linalg.yield %9 : f32
    } -> tensor<40x24xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%7 : tensor<40x24xf32>) outs(%3 : tensor<40x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %9 = arith.truncf %in : f32 to f16
      linalg.yield %9 : f16
    } -> tensor<40x24xf16>
    return %8 : tensor<40x24xf16>
  }
}
