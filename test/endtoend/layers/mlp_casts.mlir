// nn.Linear, relu, nn.Linear of f16 in f32, rounded between, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @mlp_casts(%arg0: tensor<40x32xf16>, %arg1: tensor<48x32xf16>, %arg2: tensor<48xf16>, %arg3: tensor<24x48xf16>, %arg4: tensor<24xf16>) -> tensor<40x24xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<40x32xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<40x32xf16>) outs(%0 : tensor<40x32xf32>) {
    ^bb0(%in: f16, %out: f32):
      %26 = arith.extf %in : f16 to f32
      linalg.yield %26 : f32
    } -> tensor<40x32xf32>
    %2 = tensor.empty() : tensor<48x32xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg1 : tensor<48x32xf16>) outs(%2 : tensor<48x32xf32>) {
    ^bb0(%in: f16, %out: f32):
      %26 = arith.extf %in : f16 to f32
      linalg.yield %26 : f32
    } -> tensor<48x32xf32>
    %4 = tensor.empty() : tensor<48xf32>
    %5 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg2 : tensor<48xf16>) outs(%4 : tensor<48xf32>) {
    ^bb0(%in: f16, %out: f32):
      %26 = arith.extf %in : f16 to f32
      linalg.yield %26 : f32
    } -> tensor<48xf32>
    %6 = tensor.empty() : tensor<24x48xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<24x48xf16>) outs(%6 : tensor<24x48xf32>) {
    ^bb0(%in: f16, %out: f32):
      %26 = arith.extf %in : f16 to f32
      linalg.yield %26 : f32
    } -> tensor<24x48xf32>
    %8 = tensor.empty() : tensor<24xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg4 : tensor<24xf16>) outs(%8 : tensor<24xf32>) {
    ^bb0(%in: f16, %out: f32):
      %26 = arith.extf %in : f16 to f32
      linalg.yield %26 : f32
    } -> tensor<24xf32>
    %10 = tensor.empty() : tensor<32x48xf32>
    %transposed = linalg.transpose ins(%3 : tensor<48x32xf32>) outs(%10 : tensor<32x48xf32>) permutation = [1, 0] 
    %11 = tensor.empty() : tensor<40x48xf32>
    %12 = linalg.fill ins(%cst : f32) outs(%11 : tensor<40x48xf32>) -> tensor<40x48xf32>
    %13 = linalg.matmul ins(%1, %transposed : tensor<40x32xf32>, tensor<32x48xf32>) outs(%12 : tensor<40x48xf32>) -> tensor<40x48xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%13, %5 : tensor<40x48xf32>, tensor<48xf32>) outs(%11 : tensor<40x48xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %26 = arith.addf %in, %in_1 : f32
      linalg.yield %26 : f32
    } -> tensor<40x48xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<40x48xf32>) outs(%11 : tensor<40x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %26 = arith.cmpf ugt, %in, %cst : f32
      %27 = arith.select %26, %in, %cst : f32
      linalg.yield %27 : f32
    } -> tensor<40x48xf32>
    %16 = tensor.empty() : tensor<40x48xf16>
    %17 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%15 : tensor<40x48xf32>) outs(%16 : tensor<40x48xf16>) {
    ^bb0(%in: f32, %out: f16):
      %26 = arith.truncf %in : f32 to f16
      linalg.yield %26 : f16
    } -> tensor<40x48xf16>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%17 : tensor<40x48xf16>) outs(%11 : tensor<40x48xf32>) {
    ^bb0(%in: f16, %out: f32):
      %26 = arith.extf %in : f16 to f32
      linalg.yield %26 : f32
    } -> tensor<40x48xf32>
    %19 = tensor.empty() : tensor<48x24xf32>
    %transposed_0 = linalg.transpose ins(%7 : tensor<24x48xf32>) outs(%19 : tensor<48x24xf32>) permutation = [1, 0] 
    %20 = tensor.empty() : tensor<40x24xf32>
    %21 = linalg.fill ins(%cst : f32) outs(%20 : tensor<40x24xf32>) -> tensor<40x24xf32>
    %22 = linalg.matmul ins(%18, %transposed_0 : tensor<40x48xf32>, tensor<48x24xf32>) outs(%21 : tensor<40x24xf32>) -> tensor<40x24xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%22, %9 : tensor<40x24xf32>, tensor<24xf32>) outs(%20 : tensor<40x24xf32>) {
    ^bb0(%in: f32, %in_1: f32, %out: f32):
      %26 = arith.addf %in, %in_1 : f32
      linalg.yield %26 : f32
    } -> tensor<40x24xf32>
    %24 = tensor.empty() : tensor<40x24xf16>
    %25 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%23 : tensor<40x24xf32>) outs(%24 : tensor<40x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %26 = arith.truncf %in : f32 to f16
      linalg.yield %26 : f16
    } -> tensor<40x24xf16>
    return %25 : tensor<40x24xf16>
  }
}
