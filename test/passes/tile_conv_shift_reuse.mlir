// RUN: %tc-opt %s --split-input-file --tile-conv-shift-reuse | %filecheck %s
// RUN: %tc-opt %s --split-input-file --tile-conv-shift-reuse="{n-tile=32}" | %filecheck %s --check-prefix=N32

// 56 outputs per row, 30 valid lanes per quarter: 2 units per row, 112 in all, 4 per CTA.
// CHECK-LABEL: func.func @resnet(
// CHECK-SAME: %arg0: memref<1x56x56x64xf16>, %arg1: memref<3x3x64x64xf16>, %arg2: memref<1x56x56x64xf16>)
// CHECK-SAME: tc.block = array<i64: 192, 1, 1>, tc.grid = array<i64: 28, 1, 1>, tc.kernel
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 32, 1, 1>, corners = array<i64>, dims = array<i64: 64, 56, 56, 1>, element_strides = array<i64: 1, 1, 1, 1>, mode = "tiled", strides = array<i64: 128, 7168, 401408>, swizzle = "128B"}
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 64, 64, 1, 1>, corners = array<i64>, dims = array<i64: 64, 64, 3, 3>
// CHECK: %[[D:.*]] = "tc.tmem_tile"(){{.*}} !tc.tmem<array<i64: 128, 64>, f32>
// CHECK: scf.for %[[I:.*]] = %c0 to %c3 step %c1 {
// CHECK: "tc.tma_load"{{.*}}row = 0 : i64
// CHECK: "tc.tma_load"{{.*}}row = 32 : i64
// CHECK: "tc.tma_load"{{.*}}row = 64 : i64
// CHECK: "tc.tma_load"{{.*}}row = 96 : i64
// CHECK-COUNT-3: "tc.tma_load"{{.*}}nbytes = 8192 : i64
// CHECK: %[[FIRST:.*]] = arith.cmpi ne, %[[I]], %c0
// CHECK: "tc.cp"(%[[A:.*]], %[[T:.*]]) {slice = 0 : i64}
// CHECK-NEXT: "tc.mma"(%[[D]], %[[T]], %[[B0:.*]], %[[FIRST]]) {a_slice = 0 : i64, ashift = true, b_slice = 0 : i64}
// CHECK-NEXT: "tc.mma"(%[[D]], %[[T]], %[[B1:.*]], %true) {a_slice = 0 : i64, ashift = true, b_slice = 0 : i64}
// CHECK-NEXT: "tc.mma"(%[[D]], %[[T]], %[[B2:.*]], %true) {a_slice = 0 : i64, ashift = false, b_slice = 0 : i64}
// CHECK-NEXT: "tc.cp"(%[[A]], %[[T]]) {slice = 1 : i64}
// CHECK: "tc.cp"(%[[A]], %[[T]]) {slice = 3 : i64}
// CHECK: scf.for %[[QUARTER:.*]] = %c0 to %c4 step %c1 {
// CHECK: scf.for %[[COLUMN:.*]] = %c0 to %c64 step %c16 {
// CHECK: %[[V:.*]] = "tc.tmem_ld"(%[[D]], %[[QUARTER]], %[[COLUMN]])
// CHECK: %[[H:.*]] = arith.truncf %[[V]] : vector<32x16xf32> to vector<32x16xf16>
// CHECK: "tc.store_rows"(%[[H]], %arg2{{.*}}row_dim = 2 : i64, rows = 30 : i64

// Two tiles of 32 output channels.
// N32-LABEL: func.func @resnet(
// N32-SAME: tc.grid = array<i64: 28, 2, 1>
// N32: !tc.tmem<array<i64: 128, 32>, f32>
func.func @resnet(%x: tensor<1x56x56x64xf16>, %w: tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf16> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf16>
  return %y : tensor<1x56x56x64xf16>
}

// -----

// One tap per row: every lane is valid and nothing shifts. 8 channels take half of a 16-channel step.
// CHECK-LABEL: func.func @column(
// CHECK-SAME: tc.grid = array<i64: 5, 1, 1>
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 16, 32, 1, 1>{{.*}}swizzle = "32B"}
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 16, 1, 1, 16>{{.*}}dims = array<i64: 8, 1, 3, 16>
// CHECK-NOT: ashift = true
// CHECK: rows = 32 : i64
func.func @column(%x: tensor<2x7x33x8xbf16>, %w: tensor<16x3x1x8xbf16>) -> tensor<2x5x33x16xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"} : (tensor<2x7x33x8xbf16>, tensor<16x3x1x8xbf16>) -> tensor<2x5x33x16xf32>
  return %y : tensor<2x5x33x16xf32>
}
