// relu(conv3x3), relu(conv3x3), conv1x1 and a residual, relu, channels first, in the form of torch-mlir's importer.
module {
  func.func @convs_residual(%arg0: tensor<2x8x9x9xf16>, %arg1: tensor<16x8x3x3xf16>, %arg2: tensor<16xf16>, %arg3: tensor<24x16x3x3xf16>, %arg4: tensor<24xf16>, %arg5: tensor<16x24x1x1xf16>, %arg6: tensor<16xf16>) -> tensor<2x16x9x9xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f16
    %0 = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
      tensor.yield %cst_0 : f16
    } : tensor<2x8x9x9xf16> to tensor<2x8x11x11xf16>
    %1 = tensor.empty() : tensor<2x16x9x9xf32>
    %2 = tensor.empty() : tensor<16xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%arg2 : tensor<16xf16>) outs(%2 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %c = arith.extf %in : f16 to f32
      linalg.yield %c : f32
    } -> tensor<16xf32>
    %4 = linalg.broadcast ins(%3 : tensor<16xf32>) outs(%1 : tensor<2x16x9x9xf32>) dimensions = [0, 2, 3]
    %5 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%0, %arg1 : tensor<2x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%4 : tensor<2x16x9x9xf32>) -> tensor<2x16x9x9xf32>
    %6 = tensor.empty() : tensor<2x16x9x9xf16>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<2x16x9x9xf32>) outs(%6 : tensor<2x16x9x9xf16>) {
    ^bb0(%in: f32, %out: f16):
      %c = arith.truncf %in : f32 to f16
      linalg.yield %c : f16
    } -> tensor<2x16x9x9xf16>
    %8 = tensor.empty() : tensor<2x16x9x9xf16>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%7 : tensor<2x16x9x9xf16>) outs(%8 : tensor<2x16x9x9xf16>) {
    ^bb0(%in: f16, %out: f16):
      %c = arith.cmpf ugt, %in, %cst_0 : f16
      %d = arith.select %c, %in, %cst_0 : f16
      linalg.yield %d : f16
    } -> tensor<2x16x9x9xf16>
    %10 = tensor.pad %9 low[0, 0, 1, 1] high[0, 0, 1, 1] {
    ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
      tensor.yield %cst_0 : f16
    } : tensor<2x16x9x9xf16> to tensor<2x16x11x11xf16>
    %11 = tensor.empty() : tensor<2x24x9x9xf32>
    %12 = tensor.empty() : tensor<24xf32>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%arg4 : tensor<24xf16>) outs(%12 : tensor<24xf32>) {
    ^bb0(%in: f16, %out: f32):
      %c = arith.extf %in : f16 to f32
      linalg.yield %c : f32
    } -> tensor<24xf32>
    %14 = linalg.broadcast ins(%13 : tensor<24xf32>) outs(%11 : tensor<2x24x9x9xf32>) dimensions = [0, 2, 3]
    %15 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%10, %arg3 : tensor<2x16x11x11xf16>, tensor<24x16x3x3xf16>) outs(%14 : tensor<2x24x9x9xf32>) -> tensor<2x24x9x9xf32>
    %16 = tensor.empty() : tensor<2x24x9x9xf16>
    %17 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%15 : tensor<2x24x9x9xf32>) outs(%16 : tensor<2x24x9x9xf16>) {
    ^bb0(%in: f32, %out: f16):
      %c = arith.truncf %in : f32 to f16
      linalg.yield %c : f16
    } -> tensor<2x24x9x9xf16>
    %18 = tensor.empty() : tensor<2x24x9x9xf16>
    %19 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<2x24x9x9xf16>) outs(%18 : tensor<2x24x9x9xf16>) {
    ^bb0(%in: f16, %out: f16):
      %c = arith.cmpf ugt, %in, %cst_0 : f16
      %d = arith.select %c, %in, %cst_0 : f16
      linalg.yield %d : f16
    } -> tensor<2x24x9x9xf16>
    %20 = tensor.empty() : tensor<2x16x9x9xf32>
    %21 = tensor.empty() : tensor<16xf32>
    %22 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%arg6 : tensor<16xf16>) outs(%21 : tensor<16xf32>) {
    ^bb0(%in: f16, %out: f32):
      %c = arith.extf %in : f16 to f32
      linalg.yield %c : f32
    } -> tensor<16xf32>
    %23 = linalg.broadcast ins(%22 : tensor<16xf32>) outs(%20 : tensor<2x16x9x9xf32>) dimensions = [0, 2, 3]
    %24 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>} ins(%19, %arg5 : tensor<2x24x9x9xf16>, tensor<16x24x1x1xf16>) outs(%23 : tensor<2x16x9x9xf32>) -> tensor<2x16x9x9xf32>
    %25 = tensor.empty() : tensor<2x16x9x9xf16>
    %26 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<2x16x9x9xf32>) outs(%25 : tensor<2x16x9x9xf16>) {
    ^bb0(%in: f32, %out: f16):
      %c = arith.truncf %in : f32 to f16
      linalg.yield %c : f16
    } -> tensor<2x16x9x9xf16>
    %27 = tensor.empty() : tensor<2x16x9x9xf16>
    %28 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26, %9 : tensor<2x16x9x9xf16>, tensor<2x16x9x9xf16>) outs(%27 : tensor<2x16x9x9xf16>) {
    ^bb0(%in: f16, %in_0: f16, %out: f16):
      %c = arith.addf %in, %in_0 : f16
      linalg.yield %c : f16
    } -> tensor<2x16x9x9xf16>
    %29 = tensor.empty() : tensor<2x16x9x9xf16>
    %30 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<2x16x9x9xf16>) outs(%29 : tensor<2x16x9x9xf16>) {
    ^bb0(%in: f16, %out: f16):
      %c = arith.cmpf ugt, %in, %cst_0 : f16
      %d = arith.select %c, %in, %cst_0 : f16
      linalg.yield %d : f16
    } -> tensor<2x16x9x9xf16>
    return %30 : tensor<2x16x9x9xf16>
  }
}
