// nn.ConvTranspose2d(16, 32, 3, stride=2), as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
module {
  func.func @conv_transposed(%arg0: tensor<1x16x9x9xf16>, %arg1: tensor<16x32x3x3xf16>, %arg2: tensor<32xf16>) -> tensor<1x32x19x19xf16> {
    %cst = arith.constant 0.000000e+00 : f16
    %c2 = arith.constant 2 : index
    %0 = tensor.empty() : tensor<32x16x3x3xf16>
    %1 = linalg.fill ins(%cst : f16) outs(%0 : tensor<32x16x3x3xf16>) -> tensor<32x16x3x3xf16>
    %2 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%1 : tensor<32x16x3x3xf16>) {
    ^bb0(%out: f16):
      %11 = linalg.index 0 : index
      %12 = linalg.index 1 : index
      %13 = linalg.index 2 : index
      %14 = linalg.index 3 : index
      %15 = arith.subi %c2, %13 : index
      %16 = arith.subi %c2, %14 : index
      %extracted = tensor.extract %arg1[%12, %11, %15, %16] : tensor<16x32x3x3xf16>
      linalg.yield %extracted : f16
    } -> tensor<32x16x3x3xf16>
    %3 = tensor.empty() : tensor<1x16x21x21xf16>
    %4 = linalg.fill ins(%cst : f16) outs(%3 : tensor<1x16x21x21xf16>) -> tensor<1x16x21x21xf16>
    %inserted_slice = tensor.insert_slice %arg0 into %4[0, 0, 2, 2] [1, 16, 9, 9] [1, 1, 2, 2] : tensor<1x16x9x9xf16> into tensor<1x16x21x21xf16>
    %5 = tensor.empty() : tensor<1x32x19x19xf32>
    %6 = tensor.empty() : tensor<32xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel"]} ins(%arg2 : tensor<32xf16>) outs(%6 : tensor<32xf32>) {
    ^bb0(%in: f16, %out: f32):
      %11 = arith.extf %in : f16 to f32
      linalg.yield %11 : f32
    } -> tensor<32xf32>
    %broadcasted = linalg.broadcast ins(%7 : tensor<32xf32>) outs(%5 : tensor<1x32x19x19xf32>) dimensions = [0, 2, 3] 
    %8 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%inserted_slice, %2 : tensor<1x16x21x21xf16>, tensor<32x16x3x3xf16>) outs(%broadcasted : tensor<1x32x19x19xf32>) -> tensor<1x32x19x19xf32>
    %9 = tensor.empty() : tensor<1x32x19x19xf16>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<1x32x19x19xf32>) outs(%9 : tensor<1x32x19x19xf16>) {
    ^bb0(%in: f32, %out: f16):
      %11 = arith.truncf %in : f32 to f16
      linalg.yield %11 : f16
    } -> tensor<1x32x19x19xf16>
    return %10 : tensor<1x32x19x19xf16>
  }
}
