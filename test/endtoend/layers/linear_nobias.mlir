// nn.Linear(bias=False), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @linear_nobias(%arg0: tensor<40x16xf16>, %arg1: tensor<24x16xf16>) -> tensor<40x24xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<16x24xf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<24x16xf16>) outs(%0 : tensor<16x24xf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<40x24xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<40x24xf32>) -> tensor<40x24xf32>
    %3 = linalg.matmul ins(%arg0, %transposed : tensor<40x16xf16>, tensor<16x24xf16>) outs(%2 : tensor<40x24xf32>) -> tensor<40x24xf32>
    %4 = tensor.empty() : tensor<40x24xf16>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<40x24xf32>) outs(%4 : tensor<40x24xf16>) {
    ^bb0(%in: f32, %out: f16):
      %6 = arith.truncf %in : f32 to f16
      linalg.yield %6 : f16
    } -> tensor<40x24xf16>
    return %5 : tensor<40x24xf16>
  }
}
