// F.interpolate(x, scale_factor=2), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @upsample(%arg0: tensor<2x8x9x7xf32>) -> tensor<2x8x18x14xf32> {
    %c2 = arith.constant 2 : index
    %0 = tensor.empty() : tensor<2x8x18x14xf32>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%0 : tensor<2x8x18x14xf32>) {
    ^bb0(%out: f32):
      %2 = linalg.index 0 : index
      %3 = linalg.index 1 : index
      %4 = linalg.index 2 : index
      %5 = linalg.index 3 : index
      %6 = arith.floordivsi %4, %c2 : index
      %7 = arith.floordivsi %5, %c2 : index
      %extracted = tensor.extract %arg0[%2, %3, %6, %7] : tensor<2x8x9x7xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x8x18x14xf32>
    return %1 : tensor<2x8x18x14xf32>
  }
}
