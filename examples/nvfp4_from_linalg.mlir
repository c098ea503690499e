// A linear layer whose result is quantised to NVFP4, all of it in linalg, arith and math: relu(a W + bias), the largest
// magnitude of every 16 columns, a scale for them, and elements divided by the scale as stored. One kernel.
//
//   tc-opt examples/nvfp4_from_linalg.mlir --pipeline=gemm --validate-each --emit=ptx

#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
#value = affine_map<(m, k, i) -> (m, k, i)>
#block = affine_map<(m, k, i) -> (m, k)>

func.func @linear(%a: tensor<40x64xf16>, %w: tensor<64x80xf16>, %bias: tensor<80xf32>)
    -> (tensor<40x80xf4E2M1FN>, tensor<40x5xf8E4M3FN>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %six = arith.constant 6.0 : f32
  %minus_six = arith.constant -6.0 : f32
  %most = arith.constant 448.0 : f32
  %least = arith.constant 0.001953125 : f32
  %infinity = arith.constant 0x7F800000 : f32
  %nan = arith.constant 0x7FC00000 : f32

  // The product, its bias, relu.
  %empty = tensor.empty() : tensor<40x80xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x80xf32>) -> tensor<40x80xf32>
  %c = linalg.matmul ins(%a, %w : tensor<40x64xf16>, tensor<64x80xf16>)
      outs(%zeros : tensor<40x80xf32>) -> tensor<40x80xf32>
  %x = linalg.generic {indexing_maps = [#all, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%c, %bias : tensor<40x80xf32>, tensor<80xf32>) outs(%empty : tensor<40x80xf32>) {
    ^bb0(%s: f32, %t: f32, %o: f32):
      %biased = arith.addf %s, %t : f32
      %relu = arith.maximumf %biased, %zero : f32
      linalg.yield %relu : f32
  } -> tensor<40x80xf32>

  // The largest magnitude of a block.
  %y = tensor.expand_shape %x [[0], [1, 2]] output_shape [40, 5, 16]
      : tensor<40x80xf32> into tensor<40x5x16xf32>
  %blocks = tensor.empty() : tensor<40x5xf32>
  %start = linalg.fill ins(%zero : f32) outs(%blocks : tensor<40x5xf32>) -> tensor<40x5xf32>
  %amax = linalg.generic {indexing_maps = [#value, #block],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y : tensor<40x5x16xf32>) outs(%start : tensor<40x5xf32>) {
    ^bb0(%in: f32, %largest: f32):
      %magnitude = math.absf %in : f32
      %next = arith.maximumf %magnitude, %largest : f32
      linalg.yield %next : f32
  } -> tensor<40x5xf32>

  // Its scale: amax / 6, at most 448, at least 2^-9; 0 for zeros, NaN for what is not finite.
  %stored = tensor.empty() : tensor<40x5xf8E4M3FN>
  %scales = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%amax : tensor<40x5xf32>) outs(%stored : tensor<40x5xf8E4M3FN>) {
    ^bb0(%in: f32, %o: f8E4M3FN):
      %sixth = arith.divf %in, %six : f32
      %capped = arith.minimumf %sixth, %most : f32
      %raised = arith.maximumf %capped, %least : f32
      %some = arith.cmpf ogt, %in, %zero : f32
      %number = arith.select %some, %raised, %zero : f32
      %finite = arith.cmpf olt, %in, %infinity : f32
      %known = arith.select %finite, %number, %nan : f32
      %scale = arith.truncf %known : f32 to f8E4M3FN
      linalg.yield %scale : f8E4M3FN
  } -> tensor<40x5xf8E4M3FN>

  // The elements: divided by the scale as stored; 0 where it is NaN.
  %narrow = tensor.empty() : tensor<40x5x16xf4E2M1FN>
  %elements = linalg.generic {indexing_maps = [#value, #block, #value],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y, %scales : tensor<40x5x16xf32>, tensor<40x5xf8E4M3FN>)
      outs(%narrow : tensor<40x5x16xf4E2M1FN>) {
    ^bb0(%in: f32, %scale: f8E4M3FN, %o: f4E2M1FN):
      %by = arith.extf %scale : f8E4M3FN to f32
      %none = arith.cmpf oeq, %by, %zero : f32
      %divisor = arith.select %none, %one, %by : f32
      %quotient = arith.divf %in, %divisor : f32
      %low = arith.maximumf %quotient, %minus_six : f32
      %clamped = arith.minimumf %low, %six : f32
      %unknown = arith.cmpf uno, %by, %by : f32
      %element = arith.select %unknown, %zero, %clamped : f32
      %code = arith.truncf %element : f32 to f4E2M1FN
      linalg.yield %code : f4E2M1FN
  } -> tensor<40x5x16xf4E2M1FN>
  %codes = tensor.collapse_shape %elements [[0], [1, 2]]
      : tensor<40x5x16xf4E2M1FN> into tensor<40x80xf4E2M1FN>
  return %codes, %scales : tensor<40x80xf4E2M1FN>, tensor<40x5xf8E4M3FN>
}
