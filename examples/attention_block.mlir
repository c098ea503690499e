// An attention block (ViT-Tiny: 197 tokens of 192, three heads of 64), bf16, as one function: q, k and v of x, softmax
// of q kT / 8 by heads, times v, and the projection of that, with bias and residual. Six products on tensor cores;
// softmax is three kernels for CUDA cores. Heads that lie apart, and rows of 197, are repacked.
//
//   tc-opt examples/attention_block.mlir --pipeline=gemm --emit=launches

#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
#scores = affine_map<(h, m, n) -> (h, m, n)>
#row = affine_map<(h, m, n) -> (h, m)>
#q = affine_map<(h, m, n, d) -> (m, h, d)>
#k = affine_map<(h, m, n, d) -> (n, h, d)>
#qk = affine_map<(h, m, n, d) -> (h, m, n)>
#p = affine_map<(h, m, d, n) -> (h, m, n)>
#v = affine_map<(h, m, d, n) -> (n, h, d)>
#pv = affine_map<(h, m, d, n) -> (h, m, d)>

func.func @attention(%x: tensor<197x192xbf16>,
    %q_w: tensor<192x192xbf16>, %q_b: tensor<192xf32>,
    %k_w: tensor<192x192xbf16>, %k_b: tensor<192xf32>,
    %v_w: tensor<192x192xbf16>, %v_b: tensor<192xf32>,
    %out_w: tensor<192x192xbf16>, %out_b: tensor<192xf32>)
    -> tensor<197x192xbf16> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %eighth = arith.constant 0.125 : f32

  %q_empty = tensor.empty() : tensor<197x192xf32>
  %q_zeros = linalg.fill ins(%zero : f32) outs(%q_empty : tensor<197x192xf32>) -> tensor<197x192xf32>
  %q_sums = linalg.matmul ins(%x, %q_w : tensor<197x192xbf16>, tensor<192x192xbf16>)
      outs(%q_zeros : tensor<197x192xf32>) -> tensor<197x192xf32>
  %q_rows_empty_bf16 = tensor.empty() : tensor<197x192xbf16>
  %q_rows = linalg.generic {indexing_maps = [#all, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%q_sums, %q_b : tensor<197x192xf32>, tensor<192xf32>)
      outs(%q_rows_empty_bf16 : tensor<197x192xbf16>) {
  ^bb0(%s: f32, %t: f32, %o: bf16):
    %biased = arith.addf %s, %t : f32
    %rounded = arith.truncf %biased : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<197x192xbf16>
  %q = tensor.expand_shape %q_rows [[0], [1, 2]] output_shape [197, 3, 64]
      : tensor<197x192xbf16> into tensor<197x3x64xbf16>

  %k_empty = tensor.empty() : tensor<197x192xf32>
  %k_zeros = linalg.fill ins(%zero : f32) outs(%k_empty : tensor<197x192xf32>) -> tensor<197x192xf32>
  %k_sums = linalg.matmul ins(%x, %k_w : tensor<197x192xbf16>, tensor<192x192xbf16>)
      outs(%k_zeros : tensor<197x192xf32>) -> tensor<197x192xf32>
  %k_rows_empty_bf16 = tensor.empty() : tensor<197x192xbf16>
  %k_rows = linalg.generic {indexing_maps = [#all, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%k_sums, %k_b : tensor<197x192xf32>, tensor<192xf32>)
      outs(%k_rows_empty_bf16 : tensor<197x192xbf16>) {
  ^bb0(%s: f32, %t: f32, %o: bf16):
    %biased = arith.addf %s, %t : f32
    %rounded = arith.truncf %biased : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<197x192xbf16>
  %k = tensor.expand_shape %k_rows [[0], [1, 2]] output_shape [197, 3, 64]
      : tensor<197x192xbf16> into tensor<197x3x64xbf16>

  %v_empty = tensor.empty() : tensor<197x192xf32>
  %v_zeros = linalg.fill ins(%zero : f32) outs(%v_empty : tensor<197x192xf32>) -> tensor<197x192xf32>
  %v_sums = linalg.matmul ins(%x, %v_w : tensor<197x192xbf16>, tensor<192x192xbf16>)
      outs(%v_zeros : tensor<197x192xf32>) -> tensor<197x192xf32>
  %v_rows_empty_bf16 = tensor.empty() : tensor<197x192xbf16>
  %v_rows = linalg.generic {indexing_maps = [#all, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%v_sums, %v_b : tensor<197x192xf32>, tensor<192xf32>)
      outs(%v_rows_empty_bf16 : tensor<197x192xbf16>) {
  ^bb0(%s: f32, %t: f32, %o: bf16):
    %biased = arith.addf %s, %t : f32
    %rounded = arith.truncf %biased : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<197x192xbf16>
  %v = tensor.expand_shape %v_rows [[0], [1, 2]] output_shape [197, 3, 64]
      : tensor<197x192xbf16> into tensor<197x3x64xbf16>

  %scores_empty = tensor.empty() : tensor<3x197x197xf32>
  %scores_start = linalg.fill ins(%zero : f32) outs(%scores_empty : tensor<3x197x197xf32>) -> tensor<3x197x197xf32>
  %scores = linalg.generic {indexing_maps = [#q, #k, #qk],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<197x3x64xbf16>, tensor<197x3x64xbf16>)
      outs(%scores_start : tensor<3x197x197xf32>) {
  ^bb0(%s: bf16, %t: bf16, %o: f32):
    %s32 = arith.extf %s : bf16 to f32
    %t32 = arith.extf %t : bf16 to f32
    %product = arith.mulf %s32, %t32 : f32
    %sum = arith.addf %o, %product : f32
    linalg.yield %sum : f32
  } -> tensor<3x197x197xf32>
  %scaled = linalg.generic {indexing_maps = [#scores, #scores],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scores : tensor<3x197x197xf32>)
      outs(%scores_empty : tensor<3x197x197xf32>) {
  ^bb0(%s: f32, %o: f32):
    %scaled_score = arith.mulf %s, %eighth : f32
    linalg.yield %scaled_score : f32
  } -> tensor<3x197x197xf32>

  %most_empty = tensor.empty() : tensor<3x197xf32>
  %most_start = linalg.fill ins(%low : f32) outs(%most_empty : tensor<3x197xf32>) -> tensor<3x197xf32>
  %most = linalg.generic {indexing_maps = [#scores, #row],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scaled : tensor<3x197x197xf32>)
      outs(%most_start : tensor<3x197xf32>) {
  ^bb0(%s: f32, %o: f32):
    %larger = arith.maximumf %s, %o : f32
    linalg.yield %larger : f32
  } -> tensor<3x197xf32>
  %powers = linalg.generic {indexing_maps = [#scores, #row, #scores],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scaled, %most : tensor<3x197x197xf32>, tensor<3x197xf32>)
      outs(%scores_empty : tensor<3x197x197xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %less = arith.subf %s, %t : f32
    %power = math.exp %less : f32
    linalg.yield %power : f32
  } -> tensor<3x197x197xf32>
  %total_empty = tensor.empty() : tensor<3x197xf32>
  %total_start = linalg.fill ins(%zero : f32) outs(%total_empty : tensor<3x197xf32>) -> tensor<3x197xf32>
  %total = linalg.generic {indexing_maps = [#scores, #row],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%powers : tensor<3x197x197xf32>)
      outs(%total_start : tensor<3x197xf32>) {
  ^bb0(%s: f32, %o: f32):
    %sum = arith.addf %s, %o : f32
    linalg.yield %sum : f32
  } -> tensor<3x197xf32>
  %weights_empty = tensor.empty() : tensor<3x197x197xbf16>
  %weights = linalg.generic {indexing_maps = [#scores, #row, #scores],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%powers, %total : tensor<3x197x197xf32>, tensor<3x197xf32>)
      outs(%weights_empty : tensor<3x197x197xbf16>) {
  ^bb0(%s: f32, %t: f32, %o: bf16):
    %weight = arith.divf %s, %t : f32
    %rounded = arith.truncf %weight : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<3x197x197xbf16>

  %mixed_empty = tensor.empty() : tensor<3x197x64xf32>
  %mixed_start = linalg.fill ins(%zero : f32) outs(%mixed_empty : tensor<3x197x64xf32>) -> tensor<3x197x64xf32>
  %mixed = linalg.generic {indexing_maps = [#p, #v, #pv],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%weights, %v : tensor<3x197x197xbf16>, tensor<197x3x64xbf16>)
      outs(%mixed_start : tensor<3x197x64xf32>) {
  ^bb0(%s: bf16, %t: bf16, %o: f32):
    %s32 = arith.extf %s : bf16 to f32
    %t32 = arith.extf %t : bf16 to f32
    %product = arith.mulf %s32, %t32 : f32
    %sum = arith.addf %o, %product : f32
    linalg.yield %sum : f32
  } -> tensor<3x197x64xf32>
  %heads_empty = tensor.empty() : tensor<3x197x64xbf16>
  %heads = linalg.generic {indexing_maps = [#scores, #scores],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%mixed : tensor<3x197x64xf32>)
      outs(%heads_empty : tensor<3x197x64xbf16>) {
  ^bb0(%s: f32, %o: bf16):
    %rounded = arith.truncf %s : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<3x197x64xbf16>
  %apart = tensor.empty() : tensor<197x3x64xbf16>
  %together = linalg.transpose ins(%heads : tensor<3x197x64xbf16>) outs(%apart : tensor<197x3x64xbf16>) 
      permutation = [1, 0, 2]
  %context = tensor.collapse_shape %together [[0], [1, 2]] : tensor<197x3x64xbf16> into tensor<197x192xbf16>

  %out_empty = tensor.empty() : tensor<197x192xf32>
  %out_zeros = linalg.fill ins(%zero : f32) outs(%out_empty : tensor<197x192xf32>) -> tensor<197x192xf32>
  %out_sums = linalg.matmul ins(%context, %out_w : tensor<197x192xbf16>, tensor<192x192xbf16>)
      outs(%out_zeros : tensor<197x192xf32>) -> tensor<197x192xf32>
  %y_empty_bf16 = tensor.empty() : tensor<197x192xbf16>
  %y = linalg.generic {indexing_maps = [#all, #column, #all, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%out_sums, %out_b, %x : tensor<197x192xf32>, tensor<192xf32>, tensor<197x192xbf16>)
      outs(%y_empty_bf16 : tensor<197x192xbf16>) {
  ^bb0(%s: f32, %t: f32, %u: bf16, %o: bf16):
    %biased = arith.addf %s, %t : f32
    %residual = arith.extf %u : bf16 to f32
    %sum = arith.addf %biased, %residual : f32
    %rounded = arith.truncf %sum : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<197x192xbf16>
  return %y : tensor<197x192xbf16>
}
