// nn.MaxPool2d(3, 2, 1, return_indices=True), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>
module {
  func.func @max_pool_indices(%arg0: tensor<2x8x9x7xf32>) -> (tensor<2x8x5x4xf32>, tensor<2x8x5x4xi64>) {
    %cst = arith.constant 0xFF800000 : f32
    %c2 = arith.constant 2 : index
    %c1 = arith.constant 1 : index
    %c-1_i64 = arith.constant -1 : i64
    %c7 = arith.constant 7 : index
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
      tensor.yield %cst : f32
    } : tensor<2x8x9x7xf32> to tensor<2x8x11x9xf32>
    %0 = tensor.empty() : tensor<2x8x5x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<2x8x5x4xf32>) -> tensor<2x8x5x4xf32>
    %2 = tensor.empty() : tensor<3x3xf32>
    %3 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded, %2 : tensor<2x8x11x9xf32>, tensor<3x3xf32>) outs(%1 : tensor<2x8x5x4xf32>) -> tensor<2x8x5x4xf32>
    %4 = tensor.empty() : tensor<2x8x5x4xi64>
    %5 = linalg.fill ins(%c-1_i64 : i64) outs(%4 : tensor<2x8x5x4xi64>) -> tensor<2x8x5x4xi64>
    %6 = tensor.empty() : tensor<3x3xi64>
    %7 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%3, %6 : tensor<2x8x5x4xf32>, tensor<3x3xi64>) outs(%5 : tensor<2x8x5x4xi64>) {
    ^bb0(%in: f32, %in_0: i64, %out: i64):
      %8 = linalg.index 0 : index
      %9 = linalg.index 1 : index
      %10 = linalg.index 2 : index
      %11 = linalg.index 4 : index
      %12 = arith.muli %10, %c2 : index
      %13 = arith.addi %12, %11 : index
      %14 = linalg.index 3 : index
      %15 = linalg.index 5 : index
      %16 = arith.muli %14, %c2 : index
      %17 = arith.addi %16, %15 : index
      %extracted = tensor.extract %padded[%8, %9, %13, %17] : tensor<2x8x11x9xf32>
      %18 = arith.cmpf oeq, %extracted, %in : f32
      %19 = arith.subi %17, %c1 : index
      %20 = arith.subi %13, %c1 : index
      %21 = arith.muli %20, %c7 : index
      %22 = arith.addi %19, %21 : index
      %23 = arith.index_cast %22 : index to i64
      %24 = arith.select %18, %23, %out : i64
      %25 = arith.cmpi eq, %out, %c-1_i64 : i64
      %26 = arith.select %25, %24, %out : i64
      linalg.yield %26 : i64
    } -> tensor<2x8x5x4xi64>
    return %3, %7 : tensor<2x8x5x4xf32>, tensor<2x8x5x4xi64>
  }
}
