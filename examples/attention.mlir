// Scaled dot-product attention with a causal mask: two query heads share the keys of one.
func.func @attention(%q: tensor<1x2x256x64xf16>, %k: tensor<1x1x256x64xf16>, %v: tensor<1x1x256x64xf16>) -> tensor<1x2x256x64xf16> {
  %o, %lse = "tc.attention"(%q, %k, %v) {scale = 0.125 : f32, q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd", causal_offset = 0 : i64} : (tensor<1x2x256x64xf16>, tensor<1x1x256x64xf16>, tensor<1x1x256x64xf16>) -> (tensor<1x2x256x64xf16>, tensor<1x2x256xf32>)
  return %o : tensor<1x2x256x64xf16>
}
