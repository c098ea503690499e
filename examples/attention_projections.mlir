// The projections of an attention block (ViT-Tiny: 197 tokens of 192), bf16: q, k and v of x, each with its bias, q
// scaled by 1/sqrt(64), and that of the context behind softmax, with its bias and the residual. Four kernels.
//
//   tc-opt examples/attention_projections.mlir --pipeline=gemm --emit=launches

#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

func.func @attention(%x: tensor<197x192xbf16>, %context: tensor<197x192xbf16>,
    %q_w: tensor<192x192xbf16>, %q_b: tensor<192xf32>,
    %k_w: tensor<192x192xbf16>, %k_b: tensor<192xf32>,
    %v_w: tensor<192x192xbf16>, %v_b: tensor<192xf32>,
    %out_w: tensor<192x192xbf16>, %out_b: tensor<192xf32>)
    -> (tensor<197x192xbf16>, tensor<197x192xbf16>, tensor<197x192xbf16>, tensor<197x192xbf16>) {
  %zero = arith.constant 0.0 : f32
  %eighth = arith.constant 0.125 : f32

  %q_empty = tensor.empty() : tensor<197x192xf32>
  %q_zeros = linalg.fill ins(%zero : f32) outs(%q_empty : tensor<197x192xf32>) -> tensor<197x192xf32>
  %q_sums = linalg.matmul ins(%x, %q_w : tensor<197x192xbf16>, tensor<192x192xbf16>)
      outs(%q_zeros : tensor<197x192xf32>) -> tensor<197x192xf32>
  %q_empty_bf16 = tensor.empty() : tensor<197x192xbf16>
  %q = linalg.generic {indexing_maps = [#all, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%q_sums, %q_b : tensor<197x192xf32>, tensor<192xf32>)
      outs(%q_empty_bf16 : tensor<197x192xbf16>) {
  ^bb0(%s: f32, %t: f32, %o: bf16):
    %biased = arith.addf %s, %t : f32
    %scaled = arith.mulf %biased, %eighth : f32
    %rounded = arith.truncf %scaled : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<197x192xbf16>

  %k_empty = tensor.empty() : tensor<197x192xf32>
  %k_zeros = linalg.fill ins(%zero : f32) outs(%k_empty : tensor<197x192xf32>) -> tensor<197x192xf32>
  %k_sums = linalg.matmul ins(%x, %k_w : tensor<197x192xbf16>, tensor<192x192xbf16>)
      outs(%k_zeros : tensor<197x192xf32>) -> tensor<197x192xf32>
  %k_empty_bf16 = tensor.empty() : tensor<197x192xbf16>
  %k = linalg.generic {indexing_maps = [#all, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%k_sums, %k_b : tensor<197x192xf32>, tensor<192xf32>)
      outs(%k_empty_bf16 : tensor<197x192xbf16>) {
  ^bb0(%s: f32, %t: f32, %o: bf16):
    %biased = arith.addf %s, %t : f32
    %rounded = arith.truncf %biased : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<197x192xbf16>

  %v_empty = tensor.empty() : tensor<197x192xf32>
  %v_zeros = linalg.fill ins(%zero : f32) outs(%v_empty : tensor<197x192xf32>) -> tensor<197x192xf32>
  %v_sums = linalg.matmul ins(%x, %v_w : tensor<197x192xbf16>, tensor<192x192xbf16>)
      outs(%v_zeros : tensor<197x192xf32>) -> tensor<197x192xf32>
  %v_empty_bf16 = tensor.empty() : tensor<197x192xbf16>
  %v = linalg.generic {indexing_maps = [#all, #column, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%v_sums, %v_b : tensor<197x192xf32>, tensor<192xf32>)
      outs(%v_empty_bf16 : tensor<197x192xbf16>) {
  ^bb0(%s: f32, %t: f32, %o: bf16):
    %biased = arith.addf %s, %t : f32
    %rounded = arith.truncf %biased : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<197x192xbf16>

  %out_empty = tensor.empty() : tensor<197x192xf32>
  %out_zeros = linalg.fill ins(%zero : f32) outs(%out_empty : tensor<197x192xf32>) -> tensor<197x192xf32>
  %out_sums = linalg.matmul ins(%context, %out_w : tensor<197x192xbf16>, tensor<192x192xbf16>)
      outs(%out_zeros : tensor<197x192xf32>) -> tensor<197x192xf32>
  %out_empty_bf16 = tensor.empty() : tensor<197x192xbf16>
  %out = linalg.generic {indexing_maps = [#all, #column, #all, #all],
      iterator_types = ["parallel", "parallel"]}
      ins(%out_sums, %out_b, %x : tensor<197x192xf32>, tensor<192xf32>, tensor<197x192xbf16>)
      outs(%out_empty_bf16 : tensor<197x192xbf16>) {
  ^bb0(%s: f32, %t: f32, %u: bf16, %o: bf16):
    %biased = arith.addf %s, %t : f32
    %residual = arith.extf %u : bf16 to f32
    %sum = arith.addf %biased, %residual : f32
    %rounded = arith.truncf %sum : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<197x192xbf16>
  return %q, %k, %v, %out : tensor<197x192xbf16>, tensor<197x192xbf16>, tensor<197x192xbf16>, tensor<197x192xbf16>
}
