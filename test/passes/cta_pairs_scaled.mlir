// CTA pairs of a block-scaled product, tile 256 x 128 x 256 of NVFP4: the scales of all of B's
// columns go to both tensor memories, those of A's rows to that of the CTA with the rows.
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 n-tile=128}" | %filecheck %s --check-prefix=TILE
// RUN: %tc-opt %s --tile-gemm="{cta-group=2}" | %filecheck %s --check-prefix=N256
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 n-tile=192}" | %filecheck %s --check-prefix=N192
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 n-tile=128}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 n-tile=128}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --convert-tc-to-nvvm | %filecheck %s --check-prefix=NVVM

// TILE-LABEL: func.func @nvfp4(
// TILE-SAME: tc.cluster = array<i64: 2, 1, 1>, tc.grid = array<i64: 4, 3, 1>
// TILE: %[[SFB:.*]] = "tc.make_tensor_map"(%arg3) {box = array<i64: 256, 8, 1, 1>
// TILE: "tc.make_tensor_map"(%arg2) {box = array<i64: 128, 64, 1>
// TILE: %[[SFA:.*]] = "tc.make_tensor_map"(%arg1) {box = array<i64: 256, 8, 1, 1>
// TILE: %[[COLUMN:.*]] = arith.muli %block_id_y, %c128
// TILE: %[[RANK:.*]] = "tc.cta_rank"()
// TILE: %[[HALF:.*]] = arith.muli %[[RANK]], %c64
// TILE: %[[MINE:.*]] = arith.addi %[[COLUMN]], %[[HALF]]
// TILE: "tc.tma_load"(%[[SFA]], %c0, %{{.*}}, %block_id_x, %c0, {{.*}}nbytes = 2048
// TILE: "tc.tma_load"(%{{.*}}, %{{.*}}, %[[MINE]], %c0, {{.*}}nbytes = 8192
// TILE: "tc.tma_load"(%[[SFB]], %c0, %{{.*}}, %block_id_y, %c0, {{.*}}nbytes = 2048
// TILE-COUNT-8: "tc.cp_scales"{{.*}}cta_group = 2
// TILE-COUNT-4: "tc.mma_block_scale"{{.*}}cta_group = 2

// Left out, N is a block of scales for each CTA.
// N256: "tc.make_tensor_map"(%arg3) {box = array<i64: 256, 8, 2, 1>
// N256: "tc.make_tensor_map"(%arg2) {box = array<i64: 128, 128, 1>
// N256: !tc.tmem<array<i64: 128, 256>, f32>

// The tile begins inside a block, at the same place for both CTAs.
// N192: "tc.make_tensor_map"(%arg2) {box = array<i64: 128, 96, 1>
// N192: %[[COLUMN:.*]] = arith.muli %block_id_y, %c192
// N192: arith.remui %[[COLUMN]], %c128

// ROLES: "tc.mbarrier_expect_tx"(%{{.*}}) {leader, nbytes = 57344 : i64}
// ROLES-COUNT-4: "tc.tma_load"{{.*}}cta_group = 2
// ROLES: }) {kind = "producer"
// ROLES-NOT: leader}
// ROLES: "tc.cp_scales"
// ROLES: }) {kind = "mma", leader, threads = "one", warps = array<i64: 5>}

// NVVM: nvvm.tcgen05.cp {{.*}}cta_2{{.*}}shape_32x128b
// NVVM: nvvm.tcgen05.mma.block_scale {{.*}}cta_2
func.func @nvfp4(%a: tensor<300x512xf4E2M1FN>, %sa: tensor<3x8x512xf8E4M3FN>, %b: tensor<300x512xf4E2M1FN>, %sb: tensor<3x8x512xf8E4M3FN>) -> tensor<300x300xbf16> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<300x512xf4E2M1FN>, tensor<3x8x512xf8E4M3FN>, tensor<300x512xf4E2M1FN>, tensor<3x8x512xf8E4M3FN>) -> tensor<300x300xbf16>
  return %c : tensor<300x300xbf16>
}
