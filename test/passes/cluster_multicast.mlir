// Clusters that load shared operands by multicast, from tile-gemm to threads.
// RUN: %tc-opt %s --tile-gemm="{cluster=1x2 n-tile=64}" | %filecheck %s --check-prefix=TILE
// RUN: %tc-opt %s --tile-gemm="{cluster=2x1 n-tile=64}" | %filecheck %s --check-prefix=ROWS
// RUN: %tc-opt %s --tile-gemm="{cluster=2x2 n-tile=64}" --multi-buffer="{stages=1}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=FOUR
// RUN: %tc-opt %s --tile-gemm="{cluster=1x2 n-tile=64}" --multi-buffer="{stages=1}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-gemm="{cluster=2x2 n-tile=64}" --multi-buffer="{stages=1}" --place-barriers --plan-memory --assign-roles --convert-tc-to-nvvm | %filecheck %s --check-prefix=NVVM
// RUN: %tc-opt %s --tile-gemm="{cluster=2x1 n-tile=64 persistent=true ctas=4}" | %filecheck %s --check-prefix=PERSISTENT
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cluster=3x1}" | %filecheck %s --check-prefix=THREE
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cluster=4x4}" | %filecheck %s --check-prefix=SIXTEEN
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cluster=8x1 n-tile=48}" | %filecheck %s --check-prefix=N48
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cluster=2x1 cta-group=2}" | %filecheck %s --check-prefix=PAIR
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cluster=2x1 persistent=true scheduler=clc}" | %filecheck %s --check-prefix=CLC
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cluster=2x2 persistent=true ctas=6}" | %filecheck %s --check-prefix=SIX
// THREE: expected cluster to be MxN, CTAs along rows and columns of tiles, each 1, 2, 4 or 8 and at most 8 together (what every device with clusters launches), got 3x1; smallest accepted: cluster=1x1
// SIXTEEN: at most 8 together (what every device with clusters launches), got 4x4
// N48: error: expected n-tile to be a multiple of 64 with cluster=8x1, got 48: 8 CTAs load a part of B's columns each, whole swizzle patterns of 8; take n-tile=64
// PAIR: expected cluster=1x1 with cta-group=2, got 2x1: a pair is itself a cluster of two CTAs, which share B's columns without multicast; leave one of them out
// CLC: expected cluster=1x1 with scheduler=clc, got 2x1: not built: a clusterlaunchcontrol request takes over a whole cluster, and only the CTAs of a pair share its response; take scheduler=static
// SIX: expected ctas to be a multiple of the 4 of cluster=2x2, got 6: the CTAs of a cluster go through tiles together; take ctas=8

// Two CTAs along N have the same rows of A: each loads 64 of the 128 for both, and B for itself.
// TILE-LABEL: func.func @plain(
// TILE-SAME: tc.cluster = array<i64: 1, 2, 1>, tc.grid = array<i64: 3, 4, 1>
// TILE: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 64>
// TILE: "tc.make_tensor_map"(%arg1) {box = array<i64: 64, 64>
// TILE: %[[ROW:.*]] = arith.muli %block_id_x, %c128
// TILE: %[[RANK:.*]] = "tc.cta_rank"()
// TILE: %[[A:.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
// TILE: %[[B:.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
// TILE: %[[PART:.*]] = "tc.smem_part"(%[[A]], %[[RANK]])
// TILE: %[[OFF:.*]] = arith.muli %[[RANK]], %c64
// TILE: %[[MINE:.*]] = arith.addi %[[ROW]], %[[OFF]]
// TILE: "tc.tma_load"(%{{.*}}, %{{.*}}, %[[MINE]], %[[PART]]) {cta_mask = 3 : i64, nbytes = 8192 : i64
// TILE: "tc.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[B]]) {nbytes = 8192 : i64

// Along M they have the same columns of B.
// ROWS-LABEL: func.func @plain(
// ROWS-SAME: tc.cluster = array<i64: 2, 1, 1>, tc.grid = array<i64: 4, 4, 1>
// ROWS: "tc.tma_load"({{.*}}) {nbytes = 16384 : i64
// ROWS: "tc.smem_part"
// ROWS: "tc.tma_load"({{.*}}) {cta_mask = 3 : i64, nbytes = 4096 : i64

// "full" counts both halves; "empty" takes an arrival of each CTA.
// ROLES: %[[FULL:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64
// ROLES: %[[EMPTY:.*]] = "tc.mbarrier_init"() {arrivals = 2 : i64
// ROLES: "tc.fence"() {kind = "mbarrier_init"}
// ROLES: "tc.cluster_barrier"()
// ROLES: "tc.mbarrier_wait"
// ROLES-NEXT: "tc.mbarrier_expect_tx"(%{{.*}}) {nbytes = 24576 : i64}
// ROLES-NEXT: "tc.tma_load"({{.*}}) {cta_mask = 3 : i64
// ROLES: kind = "producer"
// ROLES-COUNT-4: "tc.mma"
// ROLES-NEXT: "tc.commit"(%{{.*}}) {cta_mask = 3 : i64}
// ROLES: "tc.commit"(%{{[0-9]+}}) : (!tc.mbarrier) -> ()
// ROLES: kind = "epilogue"
// ROLES-NEXT: "tc.cluster_barrier"()
// ROLES-NEXT: "tc.tmem_dealloc"

// Of 2x2, ranks 0 and 2 have the same rows, 0 and 1 the same columns; a slot of CTA 0 is filled by
// CTAs 0, 1 and 2.
// FOUR-LABEL: func.func @plain(
// FOUR-SAME: tc.cluster = array<i64: 2, 2, 1>
// FOUR: "tc.mbarrier_init"() {arrivals = 3 : i64
// FOUR: "tc.mbarrier_expect_tx"(%{{.*}}) {nbytes = 24576 : i64}
// FOUR: "tc.tma_load"({{.*}}) {cta_mask = array<i64: 5, 10, 5, 10>, nbytes = 8192 : i64
// FOUR: "tc.tma_load"({{.*}}) {cta_mask = array<i64: 3, 3, 12, 12>, nbytes = 4096 : i64
// FOUR: "tc.commit"(%{{.*}}) {cta_mask = array<i64: 7, 11, 13, 14>}

// Masks that differ are shifted out of a constant, once.
// NVVM: nvvm.cluster_dim = array<i32: 2, 2, 1>
// NVVM: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// NVVM: %[[FIRST:.*]] = arith.muli %[[RANK]], %c4_i32
// NVVM: arith.extui
// NVVM: arith.shrui
// NVVM: arith.trunci
// NVVM: arith.andi {{.*}} : i16
// NVVM: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}multicast_mask = %{{.*}} {{.*}}: !llvm.ptr<7>
// NVVM: nvvm.tcgen05.commit %{{.*}}, multicast_mask = %{{.*}} : !llvm.ptr<3>, i16

// Two clusters go through eight clusters of tiles, numbered along x.
// PERSISTENT-LABEL: func.func @plain(
// PERSISTENT-SAME: tc.cluster = array<i64: 2, 1, 1>, tc.ctas_per_sm = 1 : i64, tc.grid = array<i64: 4, 1, 1>
// PERSISTENT: %[[NUMBER:.*]] = arith.divui %block_id_x, %c2
// PERSISTENT: %[[RANK:.*]] = "tc.cta_rank"()
// PERSISTENT: arith.addi %{{.*}}, %[[RANK]]
func.func @plain(%a: tensor<300x128xf16>, %b: tensor<200x128xf16>) -> tensor<300x200xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<300x128xf16>, tensor<200x128xf16>) -> tensor<300x200xf32>
  return %c : tensor<300x200xf32>
}
