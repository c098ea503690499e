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
