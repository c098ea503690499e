// Row-major scales are put in the tensor core's blocks by an op of their own, one for each side.
// RUN: %tc-opt %s --reorder-scales | %filecheck %s
// RUN: %tc-opt %s --reorder-scales="{operands=b}" | %filecheck %s --check-prefix=B
// RUN: %tc-opt %s --reorder-scales --reorder-scales | %filecheck %s
// RUN: %exits 3 %tc-opt %s --reorder-scales="{operands=c}" | %filecheck %s --check-prefix=BAD

// CHECK: %[[SA:.*]] = "tc.scales_to_blocked"(%arg1) : (tensor<200x64xf8E4M3FN>) -> tensor<2x16x512xf8E4M3FN>
// CHECK-NEXT: %[[SB:.*]] = "tc.scales_to_blocked"(%arg3) : (tensor<64xf8E4M3FN>) -> tensor<1x16x512xf8E4M3FN>
// CHECK-NEXT: "tc.block_scaled_matmul"(%arg0, %[[SA]], %arg2, %[[SB]]) {a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", block = 16 : i64

// B: %[[SB:.*]] = "tc.scales_to_blocked"(%arg3)
// B-NEXT: "tc.block_scaled_matmul"(%arg0, %arg1, %arg2, %[[SB]]) {a_scale_layout = "row_major", b_scale_layout = "blocked_128x4"

// BAD: expected operands ab, a or b, got c

func.func @f(%a: tensor<200x1024xf4E2M1FN>, %sa: tensor<200x64xf8E4M3FN>, %b: tensor<1024xf4E2M1FN>, %sb: tensor<64xf8E4M3FN>) -> tensor<200xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<200x1024xf4E2M1FN>, tensor<200x64xf8E4M3FN>, tensor<1024xf4E2M1FN>, tensor<64xf8E4M3FN>) -> tensor<200xf32>
  return %c : tensor<200xf32>
}
