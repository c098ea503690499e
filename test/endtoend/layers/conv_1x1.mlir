// nn.Conv2d(8, 16, 1, bias=False), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
module {
  func.func @conv_1x1(%arg0: tensor<1x8x9x9xf16>, %arg1: tensor<16x8x1x1xf16>) -> tensor<1x16x9x9xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<1x16x9x9xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
    %2 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%arg0, %arg1 : tensor<1x8x9x9xf16>, tensor<16x8x1x1xf16>) outs(%1 : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
    %3 = tensor.empty() : tensor<1x16x9x9xf16>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<1x16x9x9xf32>) outs(%3 : tensor<1x16x9x9xf16>) {
    ^bb0(%in: f32, %out: f16):
      %5 = arith.truncf %in : f32 to f16
      linalg.yield %5 : f16
    } -> tensor<1x16x9x9xf16>
    return %4 : tensor<1x16x9x9xf16>
  }
}
