// x.to(torch.float8_e4m3fn), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @to_f8(%arg0: tensor<6x40xf32>) -> tensor<6x40xf8E4M3FN> {
    %0 = tensor.empty() : tensor<6x40xf8E4M3FN>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg0 : tensor<6x40xf32>) outs(%0 : tensor<6x40xf8E4M3FN>) {
    ^bb0(%in: f32, %out: f8E4M3FN):
      %2 = arith.truncf %in : f32 to f8E4M3FN
      linalg.yield %2 : f8E4M3FN
    } -> tensor<6x40xf8E4M3FN>
    return %1 : tensor<6x40xf8E4M3FN>
  }
}
