// nn.Conv2d between permutes from and to channels last, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @conv_nhwc(%arg0: tensor<1x9x9x8xf16>, %arg1: tensor<16x8x3x3xf16>, %arg2: tensor<16xf16>) -> tensor<1x9x9x16xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %0 = tensor.empty() : tensor<1x8x9x9xf16>
    %transposed = linalg.transpose ins(%arg0 : tensor<1x9x9x8xf16>) outs(%0 : tensor<1x8x9x9xf16>) permutation = [0, 3, 1, 2] 
    %padded = tensor.pad %transposed low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      tensor.yield %cst : f16
    } : tensor<1x8x9x9xf16> to tensor<1x8x11x11xf16>
    %1 = tensor.empty() : tensor<1x16x9x9xf32>
    %2 = tensor.empty() : tensor<16xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%arg2 : tensor<16xf16>) outs(%2 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %8 = arith.extf %in : f16 to f32
      linalg.yield %8 : f32
    } -> tensor<16xf32>
    %broadcasted = linalg.broadcast ins(%3 : tensor<16xf32>) outs(%1 : tensor<1x16x9x9xf32>) dimensions = [0, 2, 3] 
    %4 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%padded, %arg1 : tensor<1x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%broadcasted : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
    %5 = tensor.empty() : tensor<1x16x9x9xf16>
    %6 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<1x16x9x9xf32>) outs(%5 : tensor<1x16x9x9xf16>) {
    ^bb0(%in: f32, %out: f16):
      %8 = arith.truncf %in : f32 to f16
      linalg.yield %8 : f16
    } -> tensor<1x16x9x9xf16>
    %7 = tensor.empty() : tensor<1x9x9x16xf16>
    %transposed_0 = linalg.transpose ins(%6 : tensor<1x16x9x9xf16>) outs(%7 : tensor<1x9x9x16xf16>) permutation = [0, 2, 3, 1] 
    return %transposed_0 : tensor<1x9x9x16xf16>
  }
}
