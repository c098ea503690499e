// F.relu(x) of int8, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @relu_i8(%arg0: tensor<6x40xi8>) -> tensor<6x40xi8> {
    %c0_i8 = arith.constant 0 : i8
    %0 = tensor.empty() : tensor<6x40xi8>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<6x40xi8>) outs(%0 : tensor<6x40xi8>) {
    ^bb0(%in: i8, %out: i8):
      %2 = arith.maxsi %in, %c0_i8 : i8
      linalg.yield %2 : i8
    } -> tensor<6x40xi8>
    return %1 : tensor<6x40xi8>
  }
}
