// nn.MaxPool2d(3, 2, 1) of int8, as the importer of torch-mlir 20261001 writes it.
module {
  func.func @max_pool_i8(%arg0: tensor<2x8x9x7xi8>) -> tensor<2x8x5x4xi8> {
    %c-128_i8 = arith.constant -128 : i8
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
      tensor.yield %c-128_i8 : i8
    } : tensor<2x8x9x7xi8> to tensor<2x8x11x9xi8>
    %0 = tensor.empty() : tensor<2x8x5x4xi8>
    %1 = linalg.fill ins(%c-128_i8 : i8) outs(%0 : tensor<2x8x5x4xi8>) -> tensor<2x8x5x4xi8>
    %2 = tensor.empty() : tensor<3x3xi8>
    %3 = linalg.pooling_nchw_max {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded, %2 : tensor<2x8x11x9xi8>, tensor<3x3xi8>) outs(%1 : tensor<2x8x5x4xi8>) -> tensor<2x8x5x4xi8>
    return %3 : tensor<2x8x5x4xi8>
  }
}
