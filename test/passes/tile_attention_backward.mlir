// Gradients of keys and values, a tile of keys per CTA: the program for warpgroups, and in tensor memory.
// RUN: %tc-opt %s --tile-attention-backward --target=sm_90a --emit=pretty | %filecheck --check-prefix=WGMMA %s
// RUN: %tc-opt %s --tile-attention-backward --target=sm_100a --emit=pretty | %filecheck --check-prefix=TMEM %s

// The tile is loaded once, and a block of rows in each step. Keys are rows of the scores: what remains of them is A
// of the sums, and the block as it lies in shared memory, transposed, is B.
// WGMMA: func.func @gradients({{.*}}%arg6: memref<1x1x256x64xf16>
// WGMMA: tc.tma_load {{.*}} -> [[K:%smem[0-9]+]][row=0] nbytes=16384
// WGMMA: tc.tma_load {{.*}} -> [[V:%smem[0-9]+]][row=0] nbytes=16384
// WGMMA: scf.for {{.*}} iter_args([[DK:%.*]] = %zero{{[^,]*}}, [[DV:%.*]] = %zero{{[^,]*}}, [[LSE:%.*]] = %fetch{{[^,]*}}, [[DELTA:%.*]] = %fetch{{[^)]*}})
// WGMMA: tc.tma_load {{.*}} -> [[Q:%smem[0-9]+]][row=0] nbytes=8192
// WGMMA: tc.tma_load {{.*}} -> [[DO:%smem[0-9]+]][row=0] nbytes=8192
// WGMMA-NEXT: [[S:%.*]] = tc.wgmma_product [[K]], [[Q]] : fragment<128x64xf32
// WGMMA-NEXT: [[DP:%.*]] = tc.wgmma_product [[V]], [[DO]] : fragment<128x64xf32
// WGMMA-NEXT: [[MASKED:%.*]] = tc.mask_fragment [[S]], {{.*}} window_offset=0
// WGMMA-NEXT: [[P:%.*]] = tc.fragment_epilogue [[MASKED]],
// WGMMA-NEXT: tc.element [[LSE]]
// WGMMA: math.exp2
// WGMMA: [[PA:%.*]] = tc.fragment_as_a [[P]] : fragment<128x64xf16 A
// WGMMA-NEXT: [[DOT:%.*]] = tc.smem_transposed [[DO]].transposed
// WGMMA-NEXT: [[DV1:%.*]] = tc.wgmma_fragment [[PA]], [[DOT]], [[DV]]
// WGMMA-NEXT: [[DS:%.*]] = tc.fragment_epilogue [[DP]],
// WGMMA-NEXT: tc.element [[P]]
// WGMMA-NEXT: tc.element [[DELTA]]
// WGMMA: [[DSA:%.*]] = tc.fragment_as_a [[DS]] : fragment<128x64xf16 A
// WGMMA: [[QT:%.*]] = tc.smem_transposed [[Q]].transposed
// WGMMA-NEXT: [[DK1:%.*]] = tc.wgmma_fragment [[DSA]], [[QT]], [[DK]]
// WGMMA-NEXT: scf.yield [[DK1]], [[DV1]],
// WGMMA: most_trips = 8

// Only the gradient of keys is scaled.
// WGMMA: tc.fill_rows {{.*}}value=1.250000e-01
// WGMMA-NEXT: [[SCALED:%.*]] = tc.scale_fragment
// WGMMA-NEXT: tc.store_fragment [[SCALED]],
// WGMMA-NOT: tc.scale_fragment
// WGMMA: tc.store_fragment

// In tensor memory both scores, both sums and their operands have columns of their own; a sum starts at the first step.
// TMEM: tc.tma_load {{.*}} -> [[K:%smem[0-9]+]][row=0] nbytes=16384
// TMEM: tc.tma_load {{.*}} -> [[V:%smem[0-9]+]][row=0] nbytes=16384
// TMEM-COUNT-6: tc.tmem_tile
// TMEM: scf.for [[J:%.*]] = %c0
// TMEM: tc.tma_load {{.*}} -> [[Q:%smem[0-9]+]][row=0] nbytes=8192
// TMEM: tc.tma_load {{.*}} -> [[DO:%smem[0-9]+]][row=0] nbytes=8192
// TMEM-NEXT: tc.mma [[S:%.*]], [[K]][j=0], [[Q]][j=0] acc=%false
// TMEM: tc.mma [[DP:%.*]], [[V]][j=0], [[DO]][j=0] acc=%false
// TMEM: scf.for [[W:%.*]] = %c0 to %c4
// TMEM: tc.tmem_ld [[S]][quarter=[[W]], column=%c0] : vector<32x64xf32>
// TMEM-NEXT: tc.mask_rows
// TMEM-NEXT: tc.load_rows %arg4
// TMEM-NEXT: tc.load_rows %arg5
// TMEM: [[E:%.*]] = math.exp2
// TMEM: tc.tmem_st_words {{.*}}, [[PT:%[a-z0-9]+]], [[W]], %c0
// TMEM: [[G:%.*]] = tc.tmem_ld [[DP]][quarter=[[W]], column=%c0] : vector<32x64xf32>
// TMEM: arith.mulf [[E]],
// TMEM: tc.tmem_st_words {{.*}}, [[DST:%[a-z0-9]+]], [[W]], %c0
// TMEM: [[QT:%.*]] = tc.smem_transposed [[Q]].transposed
// TMEM-NEXT: [[LATER:%.*]] = arith.cmpi ne, [[J]], %c0
// TMEM-NEXT: tc.mma [[DK:%.*]], [[DST]][j=0], [[QT]][j=0] acc=[[LATER]]
// TMEM: [[DOT:%.*]] = tc.smem_transposed [[DO]].transposed
// TMEM: tc.mma [[DV:%.*]], [[PT]][j=0], [[DOT]][j=0] acc=
// TMEM: tc.tmem_ld [[DK]]
// TMEM: arith.constant dense<1.250000e-01>
// TMEM: tc.store_rows {{.*}} -> %arg6
// TMEM: tc.tmem_ld [[DV]]
// TMEM-NEXT: arith.truncf
// TMEM-NEXT: tc.store_rows {{.*}} -> %arg7
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
