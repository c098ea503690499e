// x > 0.5, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @greater(%arg0: tensor<6x40xf32>) -> tensor<6x40xi1> {
    %cst = arith.constant 5.000000e-01 : f64
    %0 = tensor.empty() : tensor<6x40xi1>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<6x40xf32>) outs(%0 : tensor<6x40xi1>) {
    ^bb0(%in: f32, %out: i1):
      %2 = arith.extf %in : f32 to f64
      %3 = arith.cmpf ogt, %2, %cst : f64
      linalg.yield %3 : i1
    } -> tensor<6x40xi1>
    return %1 : tensor<6x40xi1>
  }
}
