// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 warps-n=2}' %s | %filecheck --check-prefix=TILE %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 warps-n=2}' --pipeline-cp-async='{stages=3}' %s | %filecheck --check-prefix=RING %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 warps-n=2}' --pipeline-cp-async='{stages=3}' --double-buffer-fragments --plan-staging %s | %filecheck --check-prefix=FRAGMENTS %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 atom=mma.m16n8k8.f16}' --pipeline-cp-async='{stages=3}' --double-buffer-fragments %s | %filecheck --check-prefix=SPREAD %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 atom=mma.m16n8k8.f16}' %s | %filecheck --check-prefix=ATOM %s

// TILE-LABEL: func.func @product(
// TILE-SAME: tc.block = array<i64: 64, 1, 1>, tc.grid = array<i64: 6, 1, 1>, tc.kernel, tc.target = "sm_100a", tc.warps = array<i64: 1, 2>
// TILE: [[ZERO:%.*]] = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 32, 32>, f32, "C", "mma.m16n8k16.f16">
// TILE: [[D:%.*]] = scf.for {{.*}} iter_args({{%.*}} = [[ZERO]])
// TILE: [[TA:%.*]] = "tc.smem_tile"() : () -> !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
// TILE: [[TB:%.*]] = "tc.smem_tile"() : () -> !tc.staged<array<i64: 32, 32>, f16, "MN", array<i64: 2, 4, 3>>
// TILE: "tc.cp_async"({{.*}}, [[TA]]) {operandSegmentSizes = array<i32: 1, 2, 1>, tails = "outer", width = 16 : i64}
// TILE: "tc.cp_async"({{.*}}, [[TB]]) {operandSegmentSizes = array<i32: 1, 2, 1>, tails = "inner", width = 8 : i64}
// TILE: "tc.load_fragment"([[TA]]) {k = 0 : i64, via = "ldmatrix"}
// TILE: "tc.load_fragment"([[TB]]) {k = 0 : i64, via = "ldmatrix.trans"}
// TILE: "tc.mma_sync"
// TILE: "tc.load_fragment"([[TA]]) {k = 16 : i64, via = "ldmatrix"}
// TILE: "tc.mma_sync"
// TILE: scf.yield
// TILE: "tc.store_fragment"([[D]], {{.*}}) {operandSegmentSizes = array<i32: 1, 1, 2>, tails = "outer inner"}

// Two copies ahead; two iterations with copies, two without.
// RING: "tc.smem_tile"() : () -> !tc.ring<3 : i64, !tc.staged<
// RING-COUNT-2: "tc.cp_async_commit"
// RING: scf.for
// RING: "tc.cp_async_wait"() {pending = 1 : i64}
// RING: "tc.cta_barrier"
// RING: "tc.cp_async"
// RING: "tc.cp_async_commit"
// RING: "tc.load_fragment"
// RING: scf.for
// RING: "tc.cp_async_wait"() {pending = 1 : i64}
// RING: "tc.cta_barrier"
// RING-NOT: "tc.cp_async"
// RING: "tc.store_fragment"

// The next step's fragments are loaded before this step's mma; the last iteration stands alone.
// FRAGMENTS: "tc.smem_tile"() {offset = 0 : i64} : () -> !tc.ring<3
// FRAGMENTS: "tc.smem_tile"() {offset = 6144 : i64} : () -> !tc.ring<3
// FRAGMENTS: "tc.cta_barrier"
// FRAGMENTS: {k = 0 : i64, via = "ldmatrix"}
// FRAGMENTS: scf.for {{.*}} iter_args({{%.*}} = {{%.*}}, {{%.*}} = {{%.*}}, {{%.*}} = {{%.*}})
// FRAGMENTS: {k = 16 : i64, via = "ldmatrix"}
// FRAGMENTS: "tc.cp_async"
// FRAGMENTS: "tc.cp_async"
// FRAGMENTS-NEXT: "tc.cp_async_commit"
// FRAGMENTS: "tc.mma_sync"
// FRAGMENTS: "tc.cp_async_wait"() {pending = 1 : i64}
// FRAGMENTS: "tc.cta_barrier"
// FRAGMENTS: {k = 0 : i64, via = "ldmatrix"}
// FRAGMENTS: "tc.mma_sync"
// FRAGMENTS: scf.yield
// FRAGMENTS: scf.for
// FRAGMENTS: scf.yield
// FRAGMENTS: "tc.mma_sync"
// FRAGMENTS: "tc.mma_sync"
// FRAGMENTS: "tc.store_fragment"

// Four steps of K: A's copies go with the first, B's with the second, the commit with the third.
// SPREAD: scf.for {{.*}} iter_args({{%.*}} = {{%.*}}, {{%.*}} = {{%.*}}, {{%.*}} = {{%.*}})
// SPREAD: "tc.cp_async"(%arg0
// SPREAD: "tc.mma_sync"
// SPREAD: "tc.cp_async"(%arg1
// SPREAD: "tc.mma_sync"
// SPREAD-NOT: "tc.cp_async"(
// SPREAD: "tc.cp_async_commit"
// SPREAD: "tc.mma_sync"
// SPREAD: "tc.cp_async_wait"
// SPREAD: scf.yield

// Another atom: other fragments, four steps of K.
// ATOM-COUNT-4: "tc.mma_sync"({{.*}} -> !tc.fragment<array<i64: 32, 32>, f32, "C", "mma.m16n8k8.f16">
func.func @product(%a: tensor<40x128xf16>, %b: tensor<128x68xf16>) -> tensor<40x68xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<40x128xf16>, tensor<128x68xf16>) -> tensor<40x68xf32>
  return %c : tensor<40x68xf32>
}
