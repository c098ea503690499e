// torch.round(x * 12.5).clamp(-128, 127).to(torch.int8), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @quantise(%arg0: tensor<6x40xf32>) -> tensor<6x40xi8> {
    %cst = arith.constant 1.250000e+01 : f32
    %cst_0 = arith.constant -1.280000e+02 : f32
    %cst_1 = arith.constant 1.270000e+02 : f32
    %0 = tensor.empty() : tensor<6x40xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<6x40xf32>) outs(%0 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.mulf %in, %cst : f32
      linalg.yield %6 : f32
    } -> tensor<6x40xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<6x40xf32>) outs(%0 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = math.roundeven %in : f32
      linalg.yield %6 : f32
    } -> tensor<6x40xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : tensor<6x40xf32>) outs(%0 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      %6 = arith.cmpf ult, %in, %cst_0 : f32
      %7 = arith.select %6, %cst_0, %in : f32
      %8 = arith.cmpf ugt, %7, %cst_1 : f32
      %9 = arith.select %8, %cst_1, %7 : f32
      linalg.yield %9 : f32
    } -> tensor<6x40xf32>
    %4 = tensor.empty() : tensor<6x40xi8>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<6x40xf32>) outs(%4 : tensor<6x40xi8>) {
    ^bb0(%in: f32, %out: i8):
      %6 = arith.fptosi %in : f32 to i8
      linalg.yield %6 : i8
    } -> tensor<6x40xi8>
    return %5 : tensor<6x40xi8>
  }
}
