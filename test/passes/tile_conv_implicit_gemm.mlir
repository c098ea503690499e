// RUN: %tc-opt %s --split-input-file --tile-conv-implicit-gemm | %filecheck %s
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-implicit-gemm="{n-tile=24}" | %filecheck %s --check-prefix=N24

// N24: 2:8: error: expected n-tile to be a multiple of 16 in [16, 256], got 24 {{.*}}; take 16 or 32

// 3 x 4 x 6 output pixels in one tile of 128; strides, dilations and uneven padding go into the im2col map.
// CHECK-LABEL: func.func @strided(
// CHECK-SAME: tc.grid = array<i64: 1, 1, 1>
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 128>, corners = array<i64: -3, -1, -1, -4>, dims = array<i64: 72, 9, 13, 3>, element_strides = array<i64: 1, 2, 3, 1>, mode = "im2col"
// CHECK: %[[OUT:.*]] = memref.collapse_shape %arg2 {{\[\[}}0, 1, 2], [3]] : memref<3x4x6x24xf32> into memref<72x24xf32>
// CHECK: scf.for %[[I:.*]] = %c0 to %c12 step %c1 {
// CHECK: "tc.tma_load"(%[[X:.*]], %[[C:.*]], %[[W:.*]], %[[H:.*]], %[[N:.*]], %[[S:.*]], %[[R:.*]], %[[A:.*]]) {nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 0>, row = 0 : i64}
// CHECK: "tc.tma_load"
// CHECK-NOT: tc.cp
// CHECK-COUNT-4: "tc.mma"(%{{.*}}, %[[A]], {{.*}}ashift = false
// CHECK: "tc.store_rows"(%{{.*}}, %[[OUT]], %{{.*}}, %{{.*}}) {{{.*}}row_dim = 0 : i64, rows = 32 : i64}
func.func @strided(%x: tensor<3x13x9x72xf16>, %w: tensor<3x2x72x24xf16>) -> tensor<3x4x6x24xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 3, 2>, dilations = array<i64: 2, 4>, pads = array<i64: 1, 0, 3, 3>, filter = "hwcf"} : (tensor<3x13x9x72xf16>, tensor<3x2x72x24xf16>) -> tensor<3x4x6x24xf32>
  return %y : tensor<3x4x6x24xf32>
}
