// x ** 0.5, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @pow_half(%arg0: tensor<6x40xf32>) -> tensor<6x40xf32> {
    %cst = arith.constant 5.000000e-01 : f32
    %0 = tensor.empty() : tensor<6x40xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<6x40xf32>) outs(%0 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = math.powf %in, %cst : f32
      linalg.yield %2 : f32
    } -> tensor<6x40xf32>
    return %1 : tensor<6x40xf32>
  }
}
