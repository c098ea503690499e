// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=128}" | %filecheck %s
// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=256}" | %filecheck %s --check-prefix=N256
// RUN: %exits 3 %tc-opt %s --split-input-file --tile-gemm="{n-tile=8}" | %filecheck %s --check-prefix=N8
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-gemm | %filecheck %s --check-prefix=CONV

// N8: error: expected n-tile to be a multiple of 16 in [16, 256], got 8
// CONV: 2:8: error: tile-gemm expected a function of one tc.matmul and func.return, got tc.conv2d, func.return

// A by rows is K-major, one box; B by rows is MN-major, two boxes of 64 columns.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME: tc.grid = array<i64: 3, 2, 1>
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 128>, {{.*}}dims = array<i64: 192, 300>
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 64, 64>, {{.*}}dims = array<i64: 200, 192>
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 {
// CHECK: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
// CHECK: !tc.smem<array<i64: 128, 64>, f16, "MN", "128B">
// CHECK: "tc.tma_load"{{.*}}nbytes = 16384 : i64
// CHECK: "tc.tma_load"{{.*}}nbytes = 8192 : i64, {{.*}}row = 0 : i64
// CHECK: "tc.tma_load"{{.*}}nbytes = 8192 : i64, {{.*}}row = 64 : i64
// CHECK-COUNT-4: "tc.mma"
// CHECK: row_dim = 0 : i64
// N256-LABEL: func.func @plain(
// N256-SAME: tc.grid = array<i64: 3, 1, 1>
// N256: !tc.tmem<array<i64: 128, 256>, f32>
func.func @plain(%a: tensor<300x192xf16>, %b: tensor<192x200xf16>) -> tensor<300x200xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<300x192xf16>, tensor<192x200xf16>) -> tensor<300x200xf32>
  return %c : tensor<300x200xf32>
}

// -----

// The batch is the outermost coordinate of every map and of the output.
// CHECK-LABEL: func.func @batch(
// CHECK-SAME: tc.grid = array<i64: 1, 1, 5>
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 16, 1>, {{.*}}dims = array<i64: 40, 16, 5>
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 16, 128, 1>, {{.*}}dims = array<i64: 16, 24, 5>
// CHECK: %[[Z:.*]] = gpu.block_id z
// CHECK: "tc.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[Z]], %
// CHECK: row_dim = 1 : i64
func.func @batch(%a: tensor<5x16x40xbf16>, %b: tensor<5x24x16xbf16>) -> tensor<5x40x24xbf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "nk"} : (tensor<5x16x40xbf16>, tensor<5x24x16xbf16>) -> tensor<5x40x24xbf16>
  return %c : tensor<5x40x24xbf16>
}
