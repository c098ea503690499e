// Pairs of CTAs in conv-implicit-gemm: which pixels, which filters, whose barrier, which clusters.
// RUN: %tc-opt %s --tile-conv-implicit-gemm="{cta-group=2}" | %filecheck %s --check-prefix=TILE
// RUN: %tc-opt %s --tile-conv-implicit-gemm="{cta-group=2}" --multi-buffer="{stages=2}" --place-barriers | %filecheck %s --check-prefix=BARRIERS
// RUN: %tc-opt %s --tile-conv-implicit-gemm="{cta-group=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-conv-implicit-gemm="{cta-group=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --convert-tc-to-nvvm | %filecheck %s --check-prefix=NVVM
// RUN: %tc-opt %s --tile-conv-implicit-gemm="{cta-group=2 n-tile=32}" | %filecheck %s --check-prefix=N32
// RUN: %exits 3 %tc-opt %s --tile-conv-implicit-gemm="{cta-group=2 n-tile=48}" | %filecheck %s --check-prefix=N48
// RUN: %exits 3 %tc-opt %s --tile-conv-implicit-gemm="{cta-group=4}" | %filecheck %s --check-prefix=FOUR
// N48: error: expected n-tile to be a multiple of 32 in [32, 256], got 48 (N of tcgen05.mma.kind::f16 with M = 256, PTX ISA 9.7.16.2, table 39); take 32 or 64, or 0 to choose; smallest accepted: n-tile=32
// FOUR: expected cta-group to be 1 or 2, the CTAs that an mma acts on (PTX ISA 9.7.16.5), got 4; smallest accepted: cta-group=1

// 3 x 12 x 10 pixels are three tiles: two pairs, the last CTA has no pixels. Each CTA has pixels of
// its own, and loads half of the 40 filters, in a tile of 64.
// TILE-LABEL: func.func @strided(
// TILE-SAME: tc.cluster = array<i64: 2, 1, 1>, tc.grid = array<i64: 4, 1, 1>
// TILE: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 128>, {{.*}}mode = "im2col"
// TILE: "tc.make_tensor_map"(%arg1) {box = array<i64: 32, 64, 1, 1>
// TILE: memref<3x12x10x40xf32> into memref<360x40xf32>
// TILE: %[[PIXEL:.*]] = arith.muli %block_id_x, %c128
// TILE: %[[FILTER:.*]] = arith.muli %block_id_y, %c64
// TILE: %[[Q:.*]] = arith.remui %[[PIXEL]], %c10
// TILE: %[[ROW:.*]] = arith.divui %[[PIXEL]], %c10
// TILE: %[[P:.*]] = arith.remui %[[ROW]], %c12
// TILE: %[[N:.*]] = arith.divui %[[ROW]], %c12
// TILE: %[[RANK:.*]] = "tc.cta_rank"()
// TILE: %[[HALF:.*]] = arith.muli %[[RANK]], %c32
// TILE: %[[MINE:.*]] = arith.addi %[[FILTER]], %[[HALF]]
// TILE: "tc.tmem_tile"() {{.*}}!tc.tmem<array<i64: 128, 64>, f32>
// TILE: scf.for
// TILE: "tc.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[N]], %{{.*}}, %{{.*}}, %{{.*}}) {nbytes = 16384
// TILE: "tc.tma_load"(%{{.*}}, %[[MINE]], {{.*}}nbytes = 4096 {{.*}}!tc.smem<array<i64: 32, 64>, f16, "MN", "64B">
// TILE-COUNT-4: "tc.mma"{{.*}}cta_group = 2 : i64
// TILE: arith.addi %[[PIXEL]]
// TILE: arith.addi %[[FILTER]]
// TILE: "tc.store_rows"

// N32: tc.grid = array<i64: 4, 2, 1>
// N32: "tc.make_tensor_map"(%arg1) {box = array<i64: 16, 64, 1, 1>

// The leader's barrier counts the pixels and filters of both.
// BARRIERS: "tc.cluster_barrier"()
// BARRIERS: "tc.mbarrier_expect_tx"({{.*}}) {leader, nbytes = 40960 : i64, tc.for_role = "producer"}
// BARRIERS-NEXT: "tc.tma_load"({{.*}}) {cta_group = 2 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 1>
// BARRIERS-NEXT: "tc.tma_load"({{.*}}) {cta_group = 2 : i64, nbytes = 4096 : i64
// BARRIERS: "tc.commit"(%{{.*}}) {cta_group = 2 : i64, cta_mask = 3 : i64, leader
// BARRIERS: "tc.commit"(%{{.*}}) {cta_group = 2 : i64, cta_mask = 3 : i64, leader
// BARRIERS: "tc.cluster_barrier"()

// ROLES: "tc.tmem_alloc"() {{.*}}columns = 64 : i64, cta_group = 2 : i64
// ROLES: "tc.mbarrier_expect_tx"(%{{.*}}) {leader, nbytes = 40960 : i64}
// ROLES: }) {kind = "producer", threads = "one", warps = array<i64: 4>}
// ROLES: }) {kind = "mma", leader, threads = "one", warps = array<i64: 5>}
// ROLES: }) {kind = "epilogue", threads = "warp", warps = array<i64: 0, 1, 2, 3>}
// ROLES-NEXT: "tc.cluster_barrier"()
// ROLES-NEXT: "tc.tmem_dealloc"(%{{.*}}) {{.*}}cta_group = 2 : i64

// NVVM: nvvm.cluster_dim = array<i32: 2, 1, 1>
// NVVM: %[[EVEN:.*]] = arith.andi %{{.*}}, %c-16777217_i32
// NVVM: %[[BAR:.*]] = llvm.inttoptr %[[EVEN]] : i32 to !llvm.ptr<3>
// NVVM: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %[[BAR]], box[{{.*}}] im2col[%{{.*}}, %{{.*}}] {group = #nvvm.cta_group<cta_2>, mode = #nvvm.tma_load_mode<im2col>}
// NVVM: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<7>, !llvm.ptr
// NVVM: nvvm.tcgen05.mma {{.*}}cta_2
func.func @strided(%x: tensor<3x23x10x72xf16>, %w: tensor<3x3x72x40xf16>) -> tensor<3x12x10x40xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"} : (tensor<3x23x10x72xf16>, tensor<3x3x72x40xf16>) -> tensor<3x12x10x40xf32>
  return %y : tensor<3x12x10x40xf32>
}
