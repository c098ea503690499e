// nn.Conv2d(8, 16, 3, padding=1) in f32, as the importer of torch-mlir 20261001 writes it.
module {
  func.func @conv_f32(%arg0: tensor<1x8x9x9xf32>, %arg1: tensor<16x8x3x3xf32>, %arg2: tensor<16xf32>) -> tensor<1x16x9x9xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f32
    } : tensor<1x8x9x9xf32> to tensor<1x8x11x11xf32>
    %0 = tensor.empty() : tensor<1x16x9x9xf32>
    %broadcasted = linalg.broadcast ins(%arg2 : tensor<16xf32>) outs(%0 : tensor<1x16x9x9xf32>) dimensions = [0, 2, 3] 
    %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<1x8x11x11xf32>, tensor<16x8x3x3xf32>) outs(%broadcasted : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
    return %1 : tensor<1x16x9x9xf32>
  }
}
