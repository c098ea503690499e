// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 warps-n=2}' %s | %filecheck --check-prefix=TILE %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 warps-n=2}' --pipeline-cp-async='{stages=3}' --pipeline-tma='{stages=3}' %s | %filecheck --check-prefix=RING %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 warps-n=2}' --pipeline-tma='{stages=3}' --double-buffer-fragments --plan-staging %s | %filecheck --check-prefix=FRAGMENTS %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 warps-n=2 ctas=2}' %s | %filecheck --check-prefix=TILES %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 warps-n=2 ctas=4}' --pipeline-tma='{stages=3}' %s | %filecheck --check-prefix=ON %s


// Three tiles for each of two CTAs.
// TILES: tc.grid = array<i64: 2, 1, 1>
// TILES: scf.for [[TURN:%.*]] = %c0 to %c3 step %c1 {
// TILES: arith.muli [[TURN]], %c2
// TILES: scf.for
// TILES: "tc.store_fragment"

// The last steps of a tile load the first ones of the next, if there is one.
// ON: "tc.one_thread"
// ON: "tc.one_thread"
// ON: scf.for [[TURN:%.*]] = %c0 to [[LAST:%.*]] step %c1 {
// ON: [[NEXT:%.*]] = arith.addi [[TURN]], %c1
// ON: [[MORE:%.*]] = arith.cmpi ult, [[NEXT]], [[LAST]] : index
// ON: scf.for
// ON-NOT: scf.if
// ON: "tc.one_thread"
// ON: scf.for
// ON: scf.if [[MORE]] {
// ON: "tc.one_thread"
// ON: "tc.store_fragment"

// Tiles as TMA fills them; a box for each panel of B.
// TILE-LABEL: func.func @product(
// TILE-DAG: [[A:%.*]] = "tc.make_tensor_map"(%arg0) {box = array<i64: 32, 32>, corners = array<i64>, dims = array<i64: 128, 40>, element_strides = array<i64: 1, 1>, mode = "tiled", strides = array<i64: 256>, swizzle = "64B"}
// TILE-DAG: [[B:%.*]] = "tc.make_tensor_map"(%arg1) {box = array<i64: 32, 32>, corners = array<i64>, dims = array<i64: 72, 128>, element_strides = array<i64: 1, 1>, mode = "tiled", strides = array<i64: 144>, swizzle = "64B"}
// TILE: scf.for
// TILE: [[TA:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 32, 32>, f16, "K", "64B">
// TILE: [[TB:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 32, 32>, f16, "MN", "64B">
// TILE: "tc.tma_load"([[A]], {{.*}}, [[TA]]) {nbytes = 2048 : i64, {{.*}}, row = 0 : i64}
// TILE: "tc.tma_load"([[B]], {{.*}}, [[TB]]) {nbytes = 2048 : i64, {{.*}}, row = 0 : i64}
// TILE: "tc.load_fragment"([[TA]]) {k = 0 : i64, via = "ldmatrix"}
// TILE: "tc.load_fragment"([[TB]]) {k = 0 : i64, via = "ldmatrix.trans"}

// Two steps ahead, each announced by the thread that loads; two iterations with loads, two without.
// RING: [[FULL:%.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<3 : i64, !tc.mbarrier>
// RING-NEXT: "tc.fence"() {kind = "mbarrier_init"}
// RING-NEXT: "tc.cta_barrier"
// RING: "tc.one_thread"() ({
// RING-NEXT: "tc.mbarrier_expect_tx"({{.*}}) {nbytes = 4096 : i64}
// RING-NEXT: "tc.tma_load"
// RING-NEXT: "tc.tma_load"
// RING-NEXT: }) : () -> ()
// RING: "tc.one_thread"
// RING: scf.for
// RING: "tc.slot"([[FULL]],
// RING: "tc.mbarrier_wait"
// RING-NEXT: "tc.fence"() {kind = "proxy.async.shared"}
// RING-NEXT: "tc.first_warp_barrier"
// RING: "tc.one_thread"
// RING: "tc.load_fragment"
// RING: scf.for
// RING: "tc.mbarrier_wait"
// RING-NOT: "tc.one_thread"
// RING: "tc.store_fragment"

// The loads of a later step follow the last loads of fragments but those of the next iteration.
// FRAGMENTS: "tc.smem_tile"() {offset = 0 : i64} : () -> !tc.ring<3
// FRAGMENTS: "tc.smem_tile"() {offset = 6144 : i64} : () -> !tc.ring<3
// FRAGMENTS: "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 12288 : i64}
// FRAGMENTS: scf.for {{.*}} iter_args({{%.*}} = {{%.*}}, {{%.*}} = {{%.*}}, {{%.*}} = {{%.*}})
// FRAGMENTS: {k = 16 : i64, via = "ldmatrix"}
// FRAGMENTS: "tc.one_thread"
// FRAGMENTS: "tc.mma_sync"
// FRAGMENTS: "tc.mbarrier_wait"
// FRAGMENTS-NEXT: "tc.fence"() {kind = "proxy.async.shared"}
// FRAGMENTS-NEXT: "tc.first_warp_barrier"
// FRAGMENTS: {k = 0 : i64, via = "ldmatrix"}
// FRAGMENTS: "tc.mma_sync"
// FRAGMENTS: scf.yield
func.func @product(%a: tensor<40x128xf16>, %b: tensor<128x72xf16>) -> tensor<40x72xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<40x128xf16>, tensor<128x72xf16>) -> tensor<40x72xf32>
  return %c : tensor<40x72xf32>
}
