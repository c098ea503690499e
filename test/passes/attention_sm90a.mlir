// The products of a block of keys are issued before those of the block in front are waited for, and
// warpgroups take turns.
// RUN: %tc-opt %s --target=sm_90a --tile-attention --multi-buffer --place-barriers --plan-memory --assign-roles --skew-attention | %filecheck %s --check-prefix=SKEWED
// RUN: %tc-opt %s --target=sm_90a --tile-attention --multi-buffer --place-barriers --plan-memory --assign-roles --skew-attention --take-turns | %filecheck %s --check-prefix=TURNS

// SKEWED: tc.wgmma_product
// SKEWED-NEXT: "tc.wgmma_wait"{{.*}} {pending = 0 : i64}
// SKEWED: tc.online_max
// SKEWED: tc.fragment_as_a
// SKEWED: scf.for
// SKEWED: tc.wgmma_product
// SKEWED: tc.wgmma_fragment
// SKEWED-NEXT: "tc.wgmma_wait"{{.*}} {pending = 1 : i64}
// SKEWED: tc.exp_fragment
// SKEWED: "tc.wgmma_wait"{{.*}} {pending = 0 : i64}
// SKEWED: tc.fragment_as_a
// SKEWED: tc.wgmma_fragment
// SKEWED: tc.invert_rows
// SKEWED: tc.store_fragment

// TURNS: "tc.turn"() {kind = "begin", warpgroups = 2 : i64}
// TURNS: scf.for
// TURNS: "tc.turn"() {kind = "wait", warpgroups = 2 : i64}
// TURNS-NEXT: tc.wgmma_product
// TURNS: tc.wgmma_fragment
// TURNS-NEXT: "tc.turn"() {kind = "pass", warpgroups = 2 : i64}
// TURNS: "tc.turn"() {kind = "end", warpgroups = 2 : i64}
func.func @attention(%q: tensor<1x2x128x64xf16>, %k: tensor<1x1x512x64xf16>, %v: tensor<1x1x512x64xf16>) -> tensor<1x2x128x64xf16> {
  %o, %lse = "tc.attention"(%q, %k, %v) ({}) {scale = 0.125 : f32, q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"} : (tensor<1x2x128x64xf16>, tensor<1x1x512x64xf16>, tensor<1x1x512x64xf16>) -> (tensor<1x2x128x64xf16>, tensor<1x2x128xf32>)
  return %o : tensor<1x2x128x64xf16>
}
