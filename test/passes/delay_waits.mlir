// Products of a step are waited for where their sums are used, so that the warpgroup computes beside them.
// RUN: %tc-opt %s --target=sm_90a --tile-attention-backward --multi-buffer --place-barriers --plan-memory --assign-roles | %filecheck --check-prefix=BEFORE %s
// RUN: %tc-opt %s --target=sm_90a --tile-attention-backward --multi-buffer --place-barriers --plan-memory --assign-roles --delay-waits | %filecheck %s
// RUN: %exits 3 %tc-opt %s --target=sm_90a --delay-waits 2>&1 | %filecheck --check-prefix=ORDER %s

// BEFORE: [[S:%.*]] = "tc.wgmma_product"
// BEFORE-NEXT: "tc.wgmma_wait"([[S]]) {pending = 0 : i64}
// BEFORE-NEXT: [[DP:%.*]] = "tc.wgmma_product"
// BEFORE-NEXT: "tc.wgmma_wait"([[DP]]) {pending = 0 : i64}

// The number is that of the products issued since, which may be pending. All have ended when the tiles are freed.
// CHECK: [[S:%.*]] = "tc.wgmma_product"
// CHECK-NEXT: [[DP:%.*]] = "tc.wgmma_product"
// CHECK-NEXT: [[SCORES:%.*]] = "tc.wgmma_wait"([[S]]) {pending = 1 : i64}
// CHECK-NEXT: "tc.mask_fragment"([[SCORES]],
// CHECK: math.exp2
// CHECK: [[DV:%.*]] = "tc.wgmma_fragment"
// CHECK-NEXT: [[GRADIENTS:%.*]] = "tc.wgmma_wait"([[DP]]) {pending = 1 : i64}
// CHECK-NEXT: "tc.fragment_epilogue"([[GRADIENTS]],
// CHECK: [[DK:%.*]] = "tc.wgmma_fragment"
// CHECK-NEXT: [[VALUES:%.*]] = "tc.wgmma_wait"([[DV]]) {pending = 1 : i64}
// CHECK-NEXT: [[KEYS:%.*]] = "tc.wgmma_wait"([[DK]]) {pending = 0 : i64}
// CHECK-NEXT: "tc.mbarrier_arrive"
// CHECK-NEXT: scf.yield [[KEYS]], [[VALUES]],

// ORDER: error: delay-waits expected a function with the attribute tc.kernel, got none; run assign-roles first
func.func @gradients(%q: tensor<1x2x256x64xf16>, %k: tensor<1x1x256x64xf16>, %v: tensor<1x1x256x64xf16>,
                     %dout: tensor<1x2x256x64xf16>, %lse: tensor<1x2x256xf32>, %delta: tensor<1x2x256xf32>)
    -> (tensor<1x1x256x64xf16>, tensor<1x1x256x64xf16>) {
  %dk, %dv = "tc.attention_backward"(%q, %k, %v, %dout, %lse, %delta) {of = "kv", scale = 0.125 : f32,
      q_layout = "bhmd", kv_layout = "bhnd", causal_offset = 0 : i64}
      : (tensor<1x2x256x64xf16>, tensor<1x1x256x64xf16>, tensor<1x1x256x64xf16>, tensor<1x2x256x64xf16>,
         tensor<1x2x256xf32>, tensor<1x2x256xf32>)
      -> (tensor<1x1x256x64xf16>, tensor<1x1x256x64xf16>)
  return %dk, %dv : tensor<1x1x256x64xf16>, tensor<1x1x256x64xf16>
}
