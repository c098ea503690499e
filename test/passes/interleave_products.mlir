// Two tiles of queries: a softmax each, in turn, and products of the one under the other's.
// RUN: %tc-opt %s --target=sm_100a --tile-attention="{rows=256}" --multi-buffer --place-barriers --plan-memory --assign-roles --interleave-products | %filecheck %s

// CHECK-LABEL: func.func @attention
// CHECK: tc.warpgroup_registers
// CHECK: {kind = "producer"

// Scores of the first block of both tiles, with a commit each and one for the keys.
// CHECK: "tc.mma"([[S0:%[0-9]+]], [[Q0:%[0-9]+]], [[K:%[0-9]+]], %false) {a_slice = 0
// CHECK: "tc.commit"([[SCORES0:%[0-9]+]]) :
// CHECK: "tc.mma"([[S1:%[0-9]+]], {{.*}}, [[K]], %false) {a_slice = 0
// CHECK: "tc.commit"([[SCORES1:%[0-9]+]]) :
// CHECK-NEXT: "tc.commit"
// CHECK: scf.for [[J:%arg[0-9]+]] = %c1 to
// CHECK: arith.subi [[J]], %c1
// CHECK: "tc.mbarrier_wait"([[V:%[0-9]+]], {{.*}})
// CHECK: "tc.mbarrier_wait"([[SUMS0:%[0-9]+]], {{.*}})
// CHECK: "tc.mbarrier_wait"([[P0:%[0-9]+]], {{.*}})
// CHECK: "tc.mma"([[O0:%[0-9]+]], {{.*}}) {a_slice = 0
// CHECK: "tc.mma"([[S0]], [[Q0]], {{.*}}, %false) {a_slice = 0
// CHECK: "tc.commit"([[SCORES0]])
// CHECK: "tc.mbarrier_wait"([[SUMS1:%[0-9]+]], {{.*}})
// CHECK: "tc.mbarrier_wait"([[P1:%[0-9]+]], {{.*}})
// CHECK: "tc.mma"([[O1:%[0-9]+]], {{.*}}) {a_slice = 0
// CHECK: "tc.mma"([[S1]], {{.*}}, %false) {a_slice = 0
// CHECK: "tc.commit"([[SCORES1]])
// CHECK: }
// CHECK: "tc.mbarrier_wait"([[P0]]
// CHECK: "tc.mma"([[O0]]
// CHECK: "tc.mbarrier_wait"([[P1]]
// CHECK: "tc.mma"([[O1]]
// CHECK: {kind = "mma"

// CHECK: "tc.turn"() {kind = "begin"
// CHECK: scf.for
// CHECK: "tc.tmem_ld"([[S0]]
// CHECK: "tc.row_online_max"
// CHECK: "tc.tmem_st"({{.*}}, [[S0]], {{.*}}, %c0)
// CHECK: "tc.mbarrier_arrive"([[FACTORS0:%[0-9]+]])
// CHECK: "tc.turn"() {kind = "wait"
// CHECK: "tc.row_exponentials"
// CHECK: "tc.turn"() {kind = "pass"
// CHECK: "tc.tmem_st_words"
// CHECK: "tc.mbarrier_arrive"([[P0]])
// CHECK: "tc.row_sum"
// CHECK: "tc.turn"() {kind = "end"
// CHECK: "tc.tmem_st"({{.*}}, [[S0]], {{.*}}, %c2)
// CHECK: "tc.mbarrier_arrive"([[TOTALS0:%[0-9]+]])
// CHECK: {kind = "softmax0"
// CHECK: "tc.tmem_ld"([[S1]]
// CHECK: "tc.mbarrier_arrive"([[P1]])
// CHECK: {kind = "softmax1"

// The epilogue rescales the sums of both tiles, and stores them.
// CHECK: "tc.mbarrier_wait"([[FACTORS0]]
// CHECK: "tc.tmem_ld"([[S0]], {{.*}}, %c0)
// CHECK: scf.if
// CHECK: "tc.tmem_st"({{.*}}, [[O0]]
// CHECK: "tc.mbarrier_arrive"([[SUMS0]])
// CHECK: "tc.tmem_ld"([[S1]], {{.*}}, %c0)
// CHECK: "tc.mbarrier_arrive"([[SUMS1]])
// CHECK: "tc.mbarrier_wait"([[TOTALS0]]
// CHECK: "tc.tmem_ld"([[S0]], {{.*}}, %c2)
// CHECK: "tc.store_rows"
// CHECK: {kind = "epilogue"

func.func @attention(%q: tensor<1x2x256x64xf16>, %k: tensor<1x2x512x64xf16>, %v: tensor<1x2x512x64xf16>)
    -> tensor<1x2x256x64xf16> {
  %o, %lse = "tc.attention"(%q, %k, %v) ({}) {scale = 0.125 : f32, q_layout = "bhmd",
      kv_layout = "bhnd", out_layout = "bhmd"}
      : (tensor<1x2x256x64xf16>, tensor<1x2x512x64xf16>, tensor<1x2x512x64xf16>)
      -> (tensor<1x2x256x64xf16>, tensor<1x2x256xf32>)
  return %o : tensor<1x2x256x64xf16>
}
