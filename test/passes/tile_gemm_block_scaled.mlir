// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=128}" | %filecheck %s
// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=192}" | %filecheck %s --check-prefix=N192
// RUN: %exits 3 %tc-opt %s --split-input-file --tile-gemm="{n-tile=80}" | %filecheck %s --check-prefix=N80

// N80: error: expected n-tile to be a multiple of 32 with 300 columns of B, got 80 (in tensor memory 32 rows share a column of scale factors, PTX ISA 9.7.16.10.7); take n-tile=96

// Tiles of 128 columns are whole blocks of scale factors: four sets of a stage, 4 columns each.
// CHECK-LABEL: func.func @nvfp4(
// CHECK-SAME: tc.grid = array<i64: 2, 3, 1>
// CHECK: "tc.make_tensor_map"(%arg3) {box = array<i64: 256, 8, 1, 1>, {{.*}}dims = array<i64: 256, 16, 3, 1>
// CHECK: %[[D:.*]] = "tc.tmem_tile"() {{.*}} !tc.tmem<array<i64: 128, 128>, f32>
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1 {
// CHECK-COUNT-4: "tc.tma_load"
// CHECK: !tc.tmem<array<i64: 128, 64>, i8>
// CHECK: !tc.tmem<array<i64: 128, 64>, i8>
// CHECK-COUNT-8: "tc.cp_scales"
// CHECK: "tc.mma_block_scale"(%[[D]], {{.*}}sfa_column = 0 : i64, sfa_id = 0 : i64, sfb_column = 0 : i64
// CHECK: "tc.mma_block_scale"(%[[D]], {{.*}}sfa_column = 12 : i64, sfa_id = 0 : i64, sfb_column = 12 : i64
// CHECK: arith.truncf {{.*}} to vector<32x16xbf16>

// Tiles of 192 columns begin at row 0 or 64 of a block: two blocks are loaded, and the copies of an
// odd tile go two columns further left.
// N192-LABEL: func.func @nvfp4(
// N192-SAME: tc.grid = array<i64: 2, 2, 1>
// N192: "tc.make_tensor_map"(%arg3) {box = array<i64: 256, 8, 2, 1>
// N192: %[[INSIDE:.*]] = arith.remui %{{.*}}, %c128
// N192: !tc.tmem<array<i64: 128, 144>, i8>
// N192-COUNT-4: "tc.cp_scales"
// N192: %[[LEFT:.*]] = arith.divui %[[INSIDE]], %c32
// N192: %[[FIRST:.*]] = arith.subi %c4, %[[LEFT]]
// N192: "tc.cp_scales"(%{{.*}}, %{{.*}}, %[[FIRST]]) {block = 0 : i64}
// N192-COUNT-7: "tc.cp_scales"
// N192: "tc.mma_block_scale"({{.*}}sfa_column = 0 : i64, sfa_id = 0 : i64, sfb_column = 4 : i64
// N192: "tc.mma_block_scale"({{.*}}sfa_column = 4 : i64, sfa_id = 0 : i64, sfb_column = 12 : i64
func.func @nvfp4(%a: tensor<200x512xf4E2M1FN>, %sa: tensor<2x8x512xf8E4M3FN>, %b: tensor<300x512xf4E2M1FN>, %sb: tensor<3x8x512xf8E4M3FN>) -> tensor<200x300xbf16> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<200x512xf4E2M1FN>, tensor<2x8x512xf8E4M3FN>, tensor<300x512xf4E2M1FN>, tensor<3x8x512xf8E4M3FN>) -> tensor<200x300xbf16>
  return %c : tensor<200x300xbf16>
}
