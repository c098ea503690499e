// repack-gemm: operands that TMA cannot read as they are get K innermost.
// RUN: %tc-opt %s --split-input-file --repack-gemm | %filecheck %s
// RUN: %tc-opt %s --split-input-file --repack-gemm 2>&1 | %filecheck %s --check-prefix=REMARK

// Rows of 42 f32 are 168 bytes; A stays as it is.
// CHECK-LABEL: func.func @rows(
// CHECK: %[[B:.*]] = "tc.repack"(%arg1) {permutation = array<i64: 1, 0>} : (tensor<64x42xf32>) -> tensor<42x64xf32>
// CHECK: "tc.matmul"(%arg0, %[[B]]) {a_layout = "mk", b_layout = "nk"}
// REMARK: remark: tensor maps need strides of {{.*}} bytes
// REMARK-SAME: kernels of their own repack the operands, K = 64 last
func.func @rows(%a: tensor<128x64xf32>, %b: tensor<64x42xf32>) -> tensor<128x42xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<128x64xf32>, tensor<64x42xf32>) -> tensor<128x42xf32>
  return %c : tensor<128x42xf32>
}

// -----

// K = 17 is padded in both, also in the one whose rows are aligned.
// CHECK-LABEL: func.func @pitch(
// CHECK: %[[A:.*]] = "tc.repack"(%arg0) {permutation = array<i64: 0, 1, 2>} : (tensor<2x8x17xf16>) -> tensor<2x8x24xf16>
// CHECK: %[[B:.*]] = "tc.repack"(%arg1) {permutation = array<i64: 0, 2, 1>} : (tensor<2x17x16xf16>) -> tensor<2x16x24xf16>
// CHECK: "tc.matmul"(%[[A]], %[[B]]) {a_layout = "mk", b_layout = "nk"}
// REMARK: remark: tensor maps need strides of {{.*}} bytes {{.*}} K = 24 last
func.func @pitch(%a: tensor<2x8x17xf16>, %b: tensor<2x17x16xf16>) -> tensor<2x8x16xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<2x8x17xf16>, tensor<2x17x16xf16>) -> tensor<2x8x16xf16>
  return %c : tensor<2x8x16xf16>
}

// -----

// What TMA can encode is left alone, f32 with M and N innermost, too.
// CHECK-LABEL: func.func @transposed(
// CHECK-NOT: tc.repack
// CHECK: return
func.func @transposed(%a: tensor<63x128xf32>, %b: tensor<63x40xf32>) -> tensor<128x40xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "kn"} : (tensor<63x128xf32>, tensor<63x40xf32>) -> tensor<128x40xf32>
  return %c : tensor<128x40xf32>
}

// -----

// CHECK-LABEL: func.func @aligned(
// CHECK-NOT: tc.repack
// CHECK: return
func.func @aligned(%a: tensor<16x32xi8>, %b: tensor<16x16xi8>) -> tensor<32x16xi32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "kn"} : (tensor<16x32xi8>, tensor<16x16xi8>) -> tensor<32x16xi32>
  return %c : tensor<32x16xi32>
}

// -----

// Block-scaled rows of 40 bytes, whose scales are in blocks that end in zeros: elements alone.
// CHECK-LABEL: func.func @scaled(
// CHECK: %[[A:.*]] = "tc.repack"(%arg0) {permutation = array<i64: 0, 1>} : (tensor<7x80xf4E2M1FN>) -> tensor<7x96xf4E2M1FN>
// CHECK: %[[B:.*]] = "tc.repack"(%arg2) {permutation = array<i64: 0>} : (tensor<80xf4E2M1FN>) -> tensor<96xf4E2M1FN>
// CHECK: "tc.block_scaled_matmul"(%[[A]], %arg1, %[[B]], %arg3)
// REMARK: remark: TMA cannot load rows of 80 e2m1 and e2m1: kernels of their own copy both operands, K = 96
func.func @scaled(%a: tensor<7x80xf4E2M1FN>, %sa: tensor<1x2x512xf8E4M3FN>, %b: tensor<80xf4E2M1FN>, %sb: tensor<1x2x512xf8E4M3FN>) -> tensor<7xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {zero_padding, block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<7x80xf4E2M1FN>, tensor<1x2x512xf8E4M3FN>, tensor<80xf4E2M1FN>, tensor<1x2x512xf8E4M3FN>) -> tensor<7xf32>
  return %c : tensor<7xf32>
}

// -----

// A caller's blocks may end in NaN; fp6 without 128 elements a row.
// CHECK-LABEL: func.func @scaled_by_the_caller(
// CHECK-NOT: tc.repack
// CHECK: return
func.func @scaled_by_the_caller(%a: tensor<7x160xf6E2M3FN>, %sa: tensor<1x2x512xf8E8M0FNU>, %b: tensor<3x160xf6E2M3FN>, %sb: tensor<1x2x512xf8E8M0FNU>) -> tensor<7x3xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 32 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<7x160xf6E2M3FN>, tensor<1x2x512xf8E8M0FNU>, tensor<3x160xf6E2M3FN>, tensor<1x2x512xf8E8M0FNU>) -> tensor<7x3xf32>
  return %c : tensor<7x3xf32>
}

// -----

// CHECK-LABEL: func.func @scaled_in_place(
// CHECK-NOT: tc.repack
// CHECK: return
func.func @scaled_in_place(%a: tensor<7x96xf4E2M1FN>, %sa: tensor<1x2x512xf8E4M3FN>, %b: tensor<96xf4E2M1FN>, %sb: tensor<6xf8E4M3FN>) -> tensor<7xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {zero_padding, block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<7x96xf4E2M1FN>, tensor<1x2x512xf8E4M3FN>, tensor<96xf4E2M1FN>, tensor<6xf8E4M3FN>) -> tensor<7xf32>
  return %c : tensor<7xf32>
}
