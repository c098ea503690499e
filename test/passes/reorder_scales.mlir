// Row-major scales are put in the tensor core's blocks by an op of their own, one for each side;
// with in-place=b those of B stay where TMA loads their rows.
// RUN: %tc-opt %s --split-input-file --reorder-scales | %filecheck %s
// RUN: %tc-opt %s --split-input-file --reorder-scales="{in-place=b}" | %filecheck %s --check-prefix=B
// RUN: %tc-opt %s --split-input-file --reorder-scales --reorder-scales | %filecheck %s
// RUN: %exits 3 %tc-opt %s --split-input-file --reorder-scales="{in-place=a}" | %filecheck %s --check-prefix=BAD

// CHECK-LABEL: func.func @vector
// CHECK: %[[SA:.*]] = "tc.scales_to_blocked"(%arg1) : (tensor<200x64xf8E4M3FN>) -> tensor<2x16x512xf8E4M3FN>
// CHECK-NEXT: %[[SB:.*]] = "tc.scales_to_blocked"(%arg3) : (tensor<64xf8E4M3FN>) -> tensor<1x16x512xf8E4M3FN>
// CHECK-NEXT: "tc.block_scaled_matmul"(%arg0, %[[SA]], %arg2, %[[SB]]) {a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", block = 16 : i64, {{.*}}, zero_padding}

// B-LABEL: func.func @vector
// B: %[[SA:.*]] = "tc.scales_to_blocked"(%arg1)
// B-NEXT: "tc.block_scaled_matmul"(%arg0, %[[SA]], %arg2, %arg3) {a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", {{.*}}, zero_padding}

// BAD: reorder-scales: expected in-place of "" or b, got a

func.func @vector(%a: tensor<200x1024xf4E2M1FN>, %sa: tensor<200x64xf8E4M3FN>, %b: tensor<1024xf4E2M1FN>, %sb: tensor<64xf8E4M3FN>) -> tensor<200xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<200x1024xf4E2M1FN>, tensor<200x64xf8E4M3FN>, tensor<1024xf4E2M1FN>, tensor<64xf8E4M3FN>) -> tensor<200xf32>
  return %c : tensor<200xf32>
}

// -----

// B-LABEL: func.func @rows_of_12_bytes
// B: %[[SA:.*]] = "tc.scales_to_blocked"(%arg1)
// B-NEXT: %[[SB:.*]] = "tc.scales_to_blocked"(%arg3) : (tensor<3x12xf8E4M3FN>) -> tensor<1x3x512xf8E4M3FN>
// B-NEXT: "tc.block_scaled_matmul"(%arg0, %[[SA]], %arg2, %[[SB]]) {{.*}} b_scale_layout = "blocked_128x4"
func.func @rows_of_12_bytes(%a: tensor<7x192xf4E2M1FN>, %sa: tensor<7x12xf8E4M3FN>, %b: tensor<3x192xf4E2M1FN>, %sb: tensor<3x12xf8E4M3FN>) -> tensor<7x3xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<7x192xf4E2M1FN>, tensor<7x12xf8E4M3FN>, tensor<3x192xf4E2M1FN>, tensor<3x12xf8E4M3FN>) -> tensor<7x3xf32>
  return %c : tensor<7x3xf32>
}

// -----

// B-LABEL: func.func @rows_of_16_bytes
// B: "tc.block_scaled_matmul"(%arg0, %{{.*}}, %arg2, %arg3) {{.*}} b_scale_layout = "row_major"
func.func @rows_of_16_bytes(%a: tensor<7x256xf4E2M1FN>, %sa: tensor<7x16xf8E4M3FN>, %b: tensor<3x256xf4E2M1FN>, %sb: tensor<3x16xf8E4M3FN>) -> tensor<7x3xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<7x256xf4E2M1FN>, tensor<7x16xf8E4M3FN>, tensor<3x256xf4E2M1FN>, tensor<3x16xf8E4M3FN>) -> tensor<7x3xf32>
  return %c : tensor<7x3xf32>
}

// -----

// Blocks of the caller may have NaN behind K.
// CHECK-LABEL: func.func @blocked_by_the_caller
// CHECK: "tc.block_scaled_matmul"
// CHECK-NOT: zero_padding
// CHECK: return
func.func @blocked_by_the_caller(%a: tensor<7x96xf4E2M1FN>, %sa: tensor<1x2x512xf8E4M3FN>, %b: tensor<3x96xf4E2M1FN>, %sb: tensor<3x6xf8E4M3FN>) -> tensor<7x3xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<7x96xf4E2M1FN>, tensor<1x2x512xf8E4M3FN>, tensor<3x96xf4E2M1FN>, tensor<3x6xf8E4M3FN>) -> tensor<7x3xf32>
  return %c : tensor<7x3xf32>
}
