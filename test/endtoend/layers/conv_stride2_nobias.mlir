// nn.Conv2d(8, 16, 3, padding=1, stride=2, bias=False), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @conv_stride2_nobias(%arg0: tensor<2x8x9x9xf16>, %arg1: tensor<16x8x3x3xf16>) -> tensor<2x16x5x5xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %cst_0 = arith.constant 0.000000e+00 : f32
    %padded = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg2: index, %arg3: index, %arg4: index, %arg5: index):
      tensor.yield %cst : f16
    } : tensor<2x8x9x9xf16> to tensor<2x8x11x11xf16>
    %0 = tensor.empty() : tensor<2x16x5x5xf32>
    %1 = linalg.fill ins(%cst_0 : f32) outs(%0 : tensor<2x16x5x5xf32>) -> tensor<2x16x5x5xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>} ins(%padded, %arg1 : tensor<2x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%1 : tensor<2x16x5x5xf32>) -> tensor<2x16x5x5xf32>
    %3 = tensor.empty() : tensor<2x16x5x5xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x16x5x5xf32>) outs(%3 : tensor<2x16x5x5xf16>) {
    ^bb0(%in: f32, %out: f16):
      %5 = arith.truncf %in : f32 to f16
      linalg.yield %5 : f16
    } -> tensor<2x16x5x5xf16>
    return %4 : tensor<2x16x5x5xf16>
  }
}
