// tile-gemm of f32, read as tf32: MN-major tiles have the 128-byte swizzle with atoms of 32 bytes (PTX ISA 9.7.16.10.5, table 54).
// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=48}" | %filecheck %s

// A row of 128 bytes is 32 of M or N: four boxes of A; two of B, the second half outside the tile.
// CHECK-LABEL: func.func @both(
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 32, 32>, {{.*}}dims = array<i64: 132, 36>, {{.*}}swizzle = "128B_ATOM_32B"
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 32, 32>, {{.*}}dims = array<i64: 40, 36>, {{.*}}swizzle = "128B_ATOM_32B"
// CHECK: !tc.smem<array<i64: 128, 32>, f32, "MN", "128B_ATOM_32B">
// CHECK: !tc.smem<array<i64: 48, 32>, f32, "MN", "128B_ATOM_32B">
// CHECK: "tc.tma_load"{{.*}}nbytes = 4096 : i64, {{.*}}row = 0 : i64
// CHECK: "tc.tma_load"{{.*}}row = 32 : i64
// CHECK: "tc.tma_load"{{.*}}row = 64 : i64
// CHECK: "tc.tma_load"{{.*}}row = 96 : i64
// CHECK: "tc.tma_load"{{.*}}nbytes = 4096 : i64, {{.*}}row = 0 : i64
// CHECK: "tc.tma_load"{{.*}}row = 32 : i64
// CHECK-NOT: "tc.tma_load"
// CHECK-COUNT-4: "tc.mma"
func.func @both(%a: tensor<36x132xf32>, %b: tensor<36x40xf32>) -> tensor<132x40xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "kn"} : (tensor<36x132xf32>, tensor<36x40xf32>) -> tensor<132x40xf32>
  return %c : tensor<132x40xf32>
}

// -----

// K-major operands keep the swizzle of 16 bytes.
// CHECK-LABEL: func.func @one(
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 32, 128>, {{.*}}swizzle = "128B"
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 32, 32>, {{.*}}swizzle = "128B_ATOM_32B"
func.func @one(%a: tensor<132x36xf32>, %b: tensor<36x40xf32>) -> tensor<132x40xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<132x36xf32>, tensor<36x40xf32>) -> tensor<132x40xf32>
  return %c : tensor<132x40xf32>
}
