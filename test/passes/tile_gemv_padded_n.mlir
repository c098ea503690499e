// RUN: %tc-opt %s --tile-gemv-padded-n="{schedule=single}" | %filecheck %s

// NVFP4, one vector: 200 rows are two tiles, K = 1280 five stages of 256.
// CHECK-LABEL: func.func @nvfp4
// CHECK-SAME: %[[A:.*]]: memref<200x640xi8>, %[[SA:.*]]: memref<2x20x512xf8E4M3FN>, %[[B:.*]]: memref<640xi8>, %[[SB:.*]]: memref<80xf8E4M3FN>, %[[GA:.*]]: memref<f32>
// CHECK-SAME: tc.grid = array<i64: 2, 1, 1>
// CHECK-DAG: "tc.make_tensor_map"(%[[SB]]) {box = array<i64: 16, 32, 1>, {{.*}}dims = array<i64: 80, 1, 1>, dtype = "u8"
// CHECK-DAG: "tc.make_tensor_map"(%[[A]]) {box = array<i64: 128, 128, 1>, {{.*}}dims = array<i64: 640, 200, 1>, dtype = "u8", {{.*}}swizzle = "128B"
// CHECK-DAG: "tc.make_tensor_map"(%[[B]]) {box = array<i64: 128, 16, 1>, {{.*}}dims = array<i64: 640, 1, 1>, dtype = "u8"
// CHECK-DAG: "tc.make_tensor_map"(%[[SA]]) {box = array<i64: 256, 8, 1, 1>, {{.*}}dims = array<i64: 256, 40, 2, 1>, dtype = "u8", {{.*}}swizzle = "NONE"
// CHECK: %[[D:.*]] = "tc.tmem_tile"() {{.*}} !tc.tmem<array<i64: 128, 16>, f32>
// CHECK: scf.for
// CHECK-COUNT-4: "tc.tma_load"
// CHECK-COUNT-5: "tc.cp_scales"
// CHECK: "tc.mma_block_scale"(%[[D]], {{.*}}kind = "mxf4nvf4", scale_type = "ue4m3", sfa_column = 0 : i64
// CHECK: "tc.mma_block_scale"(%[[D]], {{.*}}sfa_column = 4 : i64, sfa_id = 0 : i64, sfb_column = 1 : i64
// CHECK: "tc.mma_block_scale"(%[[D]], {{.*}}sfa_column = 8 : i64
// CHECK: "tc.mma_block_scale"(%[[D]], {{.*}}sfa_column = 12 : i64, sfa_id = 0 : i64, sfb_column = 3 : i64
// CHECK: memref.load %[[GA]]
// CHECK: "tc.tmem_ld"(%[[D]]
// CHECK: arith.mulf {{.*}} vector<32x2xf32>
// CHECK: arith.truncf {{.*}} to vector<32x2xf16>
// CHECK: "tc.store_rows"

func.func @nvfp4(%a: tensor<200x1280xf4E2M1FN>, %sa: tensor<2x20x512xf8E4M3FN>, %b: tensor<1280xf4E2M1FN>,
    %sb: tensor<80xf8E4M3FN>, %ga: tensor<f32>) -> tensor<200xf16> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %ga) {block = 16 : i64, a_scale_layout = "blocked_128x4",
    b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}
    : (tensor<200x1280xf4E2M1FN>, tensor<2x20x512xf8E4M3FN>, tensor<1280xf4E2M1FN>, tensor<80xf8E4M3FN>, tensor<f32>) -> tensor<200xf16>
  return %c : tensor<200xf16>
}
