// Attention in tensor memory: the sequential program of a CTA, its barriers, its roles, and PTX.
// RUN: %tc-opt %s --tile-attention --target=sm_100a --emit=pretty | %filecheck --check-prefix=TILE %s
// RUN: %tc-opt %s --tile-attention --multi-buffer --place-barriers --target=sm_100a --emit=pretty | %filecheck --check-prefix=WAITS %s
// RUN: %tc-opt %s --pipeline=attention --mlir-print-ir-after=assign-roles --target=sm_100a -o %t.mlir 2>&1 | %filecheck --check-prefix=ROLES %s
// RUN: %tc-opt %s --pipeline=attention --target=sm_100a --emit=ptx | %filecheck --check-prefix=PTX %s

// Scores, exponentials and sums have columns of their own: 128 + 64 + 64.
// TILE: tc.tma_load {{.*}} -> [[Q:%smem.*]][row=0]
// TILE: [[M:%.*]] = tc.lane_numbers value=0xFF800000
// TILE: [[L:%.*]] = tc.lane_numbers value=0.0
// TILE: scf.for [[J:%.*]] = %c0 to {{.*}} iter_args([[M0:%.*]] = [[M]], [[L0:%.*]] = [[L]])
// TILE: tc.tma_load {{.*}} -> [[K:%smem.*]][row=0]
// TILE: tc.tma_load {{.*}} -> [[V:%smem.*]][row=0]
// TILE: tc.mma [[S:%.*]], [[Q]][j=0], [[K]][j=0] acc=%false
// TILE: tc.mma [[S]], [[Q]][j=3], [[K]][j=3] acc=%true
// TILE: scf.for [[W:%.*]] = %c0 to %c4 {{.*}} iter_args([[M1:%.*]] = [[M0]], [[L1:%.*]] = [[L0]])
// TILE: [[ROWS:%.*]] = tc.tmem_ld [[S]][quarter=[[W]], column=%c0] : vector<32x128xf32>
// TILE: [[MASKED:%.*]] = tc.mask_rows [[ROWS]]
// TILE: [[BEFORE:%.*]] = tc.row_numbers [[M1]][quarter=[[W]]]
// TILE: [[NOW:%.*]]:3 = tc.row_online_max [[BEFORE]]
// TILE: [[P:%.*]] = tc.row_exponentials [[MASKED]], [[NOW]]#1
// TILE: [[NARROW:%.*]] = arith.truncf [[P]] : vector<32x128xf32> to vector<32x128xf16>
// TILE: [[WORDS:%.*]] = vector.bitcast [[NARROW]] : vector<32x128xf16> to vector<32x64xi32>
// TILE: tc.tmem_st_words [[WORDS]], [[PT:%.*]], [[W]], %c0
// TILE: [[DIFFER:%.*]] = tc.rows_differ [[NOW]]#2 value=1.0
// TILE: [[RESCALES:%.*]] = arith.andi {{.*}}, [[DIFFER]]
// TILE: scf.if [[RESCALES]]
// TILE: tc.tmem_ld [[O:%.*]][quarter=[[W]]
// TILE: tc.tmem_st
// TILE: tc.set_row_numbers [[M1]][quarter=[[W]]] = [[NOW]]#0
// TILE: tc.mma [[O]], [[PT]][j=0], [[V]][j=0] acc=
// TILE: tc.mma [[O]], [[PT]][j=7], [[V]][j=7] acc=%true
// TILE: tc.tmem_ld [[O]]
// TILE: tc.store_rows
// TILE: tc.row_log_sum
// TILE: tc.store_rows {{.*}} column_dim=1 row_dim=2

// The commit behind the scores is also that of the product before: of the exchanges of three tiles
// two need a barrier.
// WAITS: tc.mbarrier_init {{.*}}arrivals=1
// WAITS: [[P:%bar.*]] = tc.mbarrier_init arrivals=128
// WAITS: scf.for
// WAITS: tc.mma
// WAITS: tc.commit [[S:%bar.*]] tc.for_role=mma
// WAITS: tc.mbarrier_wait [[S]] parity={{.*}} tc.for_role=epilogue
// WAITS: scf.for
// WAITS: tc.tmem_st_words
// WAITS: tc.tmem_wait st
// WAITS: tc.fence tcgen05.before
// WAITS: tc.mbarrier_arrive [[P]]
// WAITS: tc.mbarrier_wait [[P]] parity={{.*}} tc.for_role=mma
// WAITS: tc.fence tcgen05.after
// WAITS: tc.mma
// WAITS: tc.commit
// WAITS: tc.tmem_ld

// What the loop carries is the warps'.
// ROLES: "tc.role"() ({
// ROLES-NOT: iter_args
// ROLES: "tc.tma_load"
// ROLES: }) {kind = "producer"
// ROLES: "tc.role"() ({
// ROLES-NOT: iter_args
// ROLES: "tc.mma"
// ROLES: }) {kind = "mma"
// ROLES: "tc.role"() ({
// ROLES: scf.for {{.*}} iter_args
// ROLES: "tc.row_numbers"({{.*}}, %arg{{[0-9]+}})
// ROLES: "tc.mbarrier_arrive"
// ROLES: }) {kind = "epilogue"

// PTX: .target sm_100a
// PTX: tcgen05.ld.sync.aligned.32x32b.x128.b32
// PTX: tcgen05.wait::ld.sync.aligned;
// PTX: max.f32 {{.*}}, {{.*}}, {{.*}}, {{.*}};
// PTX: ex2.approx.ftz.f32
// PTX: fma.rn.f32x2
// PTX: cvt.rn.f16x2.f32
// PTX: tcgen05.st.sync.aligned.32x32b.x64.b32
func.func @attention(%q: tensor<1x4x200x64xf16>, %k: tensor<1x2x200x64xf16>,
                     %v: tensor<1x2x200x64xf16>) -> (tensor<1x4x200x64xf16>, tensor<1x4x200xf32>) {
  %o, %lse = "tc.attention"(%q, %k, %v) ({}) {scale = 0.125 : f32, q_layout = "bhmd",
      kv_layout = "bhnd", out_layout = "bhmd", causal_offset = 0 : i64}
      : (tensor<1x4x200x64xf16>, tensor<1x2x200x64xf16>, tensor<1x2x200x64xf16>)
      -> (tensor<1x4x200x64xf16>, tensor<1x4x200xf32>)
  return %o, %lse : tensor<1x4x200x64xf16>, tensor<1x4x200xf32>
}
