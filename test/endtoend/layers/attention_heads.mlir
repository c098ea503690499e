// Self-attention of 3 heads with its four projections, bf16, as the importer of torch-mlir 20261001 writes it.
#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @attention_heads(%arg0: tensor<2x20x48xbf16>, %arg1: tensor<48x48xbf16>, %arg2: tensor<48x48xbf16>, %arg3: tensor<48x48xbf16>, %arg4: tensor<48x48xbf16>) -> tensor<2x20x48xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %cst_1 = arith.constant 2.500000e-01 : bf16
    %0 = tensor.empty() : tensor<48x48xbf16>
    %transposed = linalg.transpose ins(%arg1 : tensor<48x48xbf16>) outs(%0 : tensor<48x48xbf16>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<2x48x48xbf16>
    %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<48x48xbf16>) outs(%1 : tensor<2x48x48xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x48x48xbf16>
    %3 = tensor.empty() : tensor<2x20x48xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
    %5 = linalg.batch_matmul ins(%arg0, %2 : tensor<2x20x48xbf16>, tensor<2x48x48xbf16>) outs(%4 : tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
    %6 = tensor.empty() : tensor<2x20x48xbf16>
    %7 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%5 : tensor<2x20x48xf32>) outs(%6 : tensor<2x20x48xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<2x20x48xbf16>
    %expanded = tensor.expand_shape %7 [[0], [1], [2, 3]] output_shape [2, 20, 3, 16] : tensor<2x20x48xbf16> into tensor<2x20x3x16xbf16>
    %8 = tensor.empty() : tensor<2x3x20x16xbf16>
    %transposed_2 = linalg.transpose ins(%expanded : tensor<2x20x3x16xbf16>) outs(%8 : tensor<2x3x20x16xbf16>) permutation = [0, 2, 1, 3] 
    %transposed_3 = linalg.transpose ins(%arg2 : tensor<48x48xbf16>) outs(%0 : tensor<48x48xbf16>) permutation = [1, 0] 
    %9 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_3 : tensor<48x48xbf16>) outs(%1 : tensor<2x48x48xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x48x48xbf16>
    %10 = linalg.batch_matmul ins(%arg0, %9 : tensor<2x20x48xbf16>, tensor<2x48x48xbf16>) outs(%4 : tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
    %11 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<2x20x48xf32>) outs(%6 : tensor<2x20x48xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<2x20x48xbf16>
    %expanded_4 = tensor.expand_shape %11 [[0], [1], [2, 3]] output_shape [2, 20, 3, 16] : tensor<2x20x48xbf16> into tensor<2x20x3x16xbf16>
    %transposed_5 = linalg.transpose ins(%arg3 : tensor<48x48xbf16>) outs(%0 : tensor<48x48xbf16>) permutation = [1, 0] 
    %12 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_5 : tensor<48x48xbf16>) outs(%1 : tensor<2x48x48xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x48x48xbf16>
    %13 = linalg.batch_matmul ins(%arg0, %12 : tensor<2x20x48xbf16>, tensor<2x48x48xbf16>) outs(%4 : tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
    %14 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<2x20x48xf32>) outs(%6 : tensor<2x20x48xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<2x20x48xbf16>
    %expanded_6 = tensor.expand_shape %14 [[0], [1], [2, 3]] output_shape [2, 20, 3, 16] : tensor<2x20x48xbf16> into tensor<2x20x3x16xbf16>
    %transposed_7 = linalg.transpose ins(%expanded_6 : tensor<2x20x3x16xbf16>) outs(%8 : tensor<2x3x20x16xbf16>) permutation = [0, 2, 1, 3] 
    %15 = tensor.empty() : tensor<2x3x16x20xbf16>
    %transposed_8 = linalg.transpose ins(%expanded_4 : tensor<2x20x3x16xbf16>) outs(%15 : tensor<2x3x16x20xbf16>) permutation = [0, 2, 3, 1] 
    %collapsed = tensor.collapse_shape %transposed_2 [[0, 1], [2], [3]] : tensor<2x3x20x16xbf16> into tensor<6x20x16xbf16>
    %collapsed_9 = tensor.collapse_shape %transposed_8 [[0, 1], [2], [3]] : tensor<2x3x16x20xbf16> into tensor<6x16x20xbf16>
    %16 = tensor.empty() : tensor<6x20x20xf32>
    %17 = linalg.fill ins(%cst : f32) outs(%16 : tensor<6x20x20xf32>) -> tensor<6x20x20xf32>
    %18 = linalg.batch_matmul ins(%collapsed, %collapsed_9 : tensor<6x20x16xbf16>, tensor<6x16x20xbf16>) outs(%17 : tensor<6x20x20xf32>) -> tensor<6x20x20xf32>
    %19 = tensor.empty() : tensor<6x20x20xbf16>
    %20 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<6x20x20xf32>) outs(%19 : tensor<6x20x20xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<6x20x20xbf16>
    %expanded_10 = tensor.expand_shape %20 [[0, 1], [2], [3]] output_shape [2, 3, 20, 20] : tensor<6x20x20xbf16> into tensor<2x3x20x20xbf16>
    %21 = tensor.empty() : tensor<2x3x20x20xbf16>
    %22 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<2x3x20x20xbf16>) outs(%21 : tensor<2x3x20x20xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      %46 = arith.mulf %in, %cst_1 : bf16
      linalg.yield %46 : bf16
    } -> tensor<2x3x20x20xbf16>
    %23 = tensor.empty() : tensor<2x3x20x20xf32>
    %24 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22 : tensor<2x3x20x20xbf16>) outs(%23 : tensor<2x3x20x20xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %46 = arith.extf %in : bf16 to f32
      linalg.yield %46 : f32
    } -> tensor<2x3x20x20xf32>
    %25 = tensor.empty() : tensor<2x3x20xi64>
    %26 = linalg.fill ins(%c0_i64 : i64) outs(%25 : tensor<2x3x20xi64>) -> tensor<2x3x20xi64>
    %27 = tensor.empty() : tensor<2x3x20xf32>
    %28 = linalg.fill ins(%cst_0 : f32) outs(%27 : tensor<2x3x20xf32>) -> tensor<2x3x20xf32>
    %29:2 = linalg.generic {indexing_maps = [#map2, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<2x3x20x20xf32>) outs(%28, %26 : tensor<2x3x20xf32>, tensor<2x3x20xi64>) {
    ^bb0(%in: f32, %out: f32, %out_18: i64):
      %46 = linalg.index 3 : index
      %47 = arith.index_cast %46 : index to i64
      %48 = arith.maximumf %in, %out : f32
      %49 = arith.cmpf ogt, %in, %out : f32
      %50 = arith.select %49, %47, %out_18 : i64
      linalg.yield %48, %50 : f32, i64
    } -> (tensor<2x3x20xf32>, tensor<2x3x20xi64>)
    %expanded_11 = tensor.expand_shape %29#0 [[0], [1], [2, 3]] output_shape [2, 3, 20, 1] : tensor<2x3x20xf32> into tensor<2x3x20x1xf32>
    %30 = linalg.generic {indexing_maps = [#map2, #map4, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24, %expanded_11 : tensor<2x3x20x20xf32>, tensor<2x3x20x1xf32>) outs(%23 : tensor<2x3x20x20xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %46 = arith.subf %in, %in_18 : f32
      linalg.yield %46 : f32
    } -> tensor<2x3x20x20xf32>
    %31 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%30 : tensor<2x3x20x20xf32>) outs(%23 : tensor<2x3x20x20xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = math.exp %in : f32
      linalg.yield %46 : f32
    } -> tensor<2x3x20x20xf32>
    %32 = tensor.empty() : tensor<2x3x20x1xf32>
    %33 = linalg.fill ins(%cst : f32) outs(%32 : tensor<2x3x20x1xf32>) -> tensor<2x3x20x1xf32>
    %34 = linalg.generic {indexing_maps = [#map2, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%31 : tensor<2x3x20x20xf32>) outs(%33 : tensor<2x3x20x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %46 = arith.addf %in, %out : f32
      linalg.yield %46 : f32
    } -> tensor<2x3x20x1xf32>
    %35 = linalg.generic {indexing_maps = [#map2, #map4, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31, %34 : tensor<2x3x20x20xf32>, tensor<2x3x20x1xf32>) outs(%23 : tensor<2x3x20x20xf32>) {
    ^bb0(%in: f32, %in_18: f32, %out: f32):
      %46 = arith.divf %in, %in_18 : f32
      linalg.yield %46 : f32
    } -> tensor<2x3x20x20xf32>
    %36 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35 : tensor<2x3x20x20xf32>) outs(%21 : tensor<2x3x20x20xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<2x3x20x20xbf16>
    %collapsed_12 = tensor.collapse_shape %36 [[0, 1], [2], [3]] : tensor<2x3x20x20xbf16> into tensor<6x20x20xbf16>
    %collapsed_13 = tensor.collapse_shape %transposed_7 [[0, 1], [2], [3]] : tensor<2x3x20x16xbf16> into tensor<6x20x16xbf16>
    %37 = tensor.empty() : tensor<6x20x16xf32>
    %38 = linalg.fill ins(%cst : f32) outs(%37 : tensor<6x20x16xf32>) -> tensor<6x20x16xf32>
    %39 = linalg.batch_matmul ins(%collapsed_12, %collapsed_13 : tensor<6x20x20xbf16>, tensor<6x20x16xbf16>) outs(%38 : tensor<6x20x16xf32>) -> tensor<6x20x16xf32>
    %40 = tensor.empty() : tensor<6x20x16xbf16>
    %41 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%39 : tensor<6x20x16xf32>) outs(%40 : tensor<6x20x16xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<6x20x16xbf16>
    %expanded_14 = tensor.expand_shape %41 [[0, 1], [2], [3]] output_shape [2, 3, 20, 16] : tensor<6x20x16xbf16> into tensor<2x3x20x16xbf16>
    %42 = tensor.empty() : tensor<2x20x3x16xbf16>
    %transposed_15 = linalg.transpose ins(%expanded_14 : tensor<2x3x20x16xbf16>) outs(%42 : tensor<2x20x3x16xbf16>) permutation = [0, 2, 1, 3] 
    %collapsed_16 = tensor.collapse_shape %transposed_15 [[0], [1], [2, 3]] : tensor<2x20x3x16xbf16> into tensor<2x20x48xbf16>
    %transposed_17 = linalg.transpose ins(%arg4 : tensor<48x48xbf16>) outs(%0 : tensor<48x48xbf16>) permutation = [1, 0] 
    %43 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed_17 : tensor<48x48xbf16>) outs(%1 : tensor<2x48x48xbf16>) {
    ^bb0(%in: bf16, %out: bf16):
      linalg.yield %in : bf16
    } -> tensor<2x48x48xbf16>
    %44 = linalg.batch_matmul ins(%collapsed_16, %43 : tensor<2x20x48xbf16>, tensor<2x48x48xbf16>) outs(%4 : tensor<2x20x48xf32>) -> tensor<2x20x48xf32>
    %45 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%44 : tensor<2x20x48xf32>) outs(%6 : tensor<2x20x48xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %46 = arith.truncf %in : f32 to bf16
      linalg.yield %46 : bf16
    } -> tensor<2x20x48xbf16>
    return %45 : tensor<2x20x48xbf16>
  }
}
