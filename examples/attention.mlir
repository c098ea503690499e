// Attention of two heads of 64 elements: 256 queries, 256 keys. Scores, exponentials and sums stay in tensor memory.
//
//   tc-opt examples/attention.mlir --pipeline=attention --validate-each --emit=ptx

func.func @attention(%q: tensor<1x2x256x64xf16>, %k: tensor<1x2x256x64xf16>,
                     %v: tensor<1x2x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o, %lse = "tc.attention"(%q, %k, %v) ({}) {scale = 0.125 : f32,
      q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"}
      : (tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>, tensor<1x2x256x64xf16>)
      -> (tensor<1x2x256x64xf16>, tensor<1x2x256xf32>)
  return %o : tensor<1x2x256x64xf16>
}
