// A tc.epilogue is cloned onto the register tiles of a convolution; what it reads by pixel, every lane reads at its own.
// RUN: %tc-opt %s --split-input-file --tile-conv-implicit-gemm | %filecheck %s --check-prefix=GEMM
// RUN: %tc-opt %s --split-input-file --tile-conv-smem-offset | %filecheck %s --check-prefixes=CHECK,OFFSET
// RUN: %tc-opt %s --split-input-file --tile-conv-shift-reuse | %filecheck %s --check-prefix=ROWS
// RUN: %tc-opt %s --split-input-file --tile-conv-shift-reuse="{tiling=packed}" | %filecheck %s --check-prefixes=CHECK

// CHECK-LABEL: func.func @block(
// CHECK: "tc.tmem_ld"
// CHECK: %[[K:.*]] = arith.addi
// A bias has no rows: all lanes read the same channels.
// CHECK: %[[BIAS:.*]] = "tc.load_rows"(%arg2, %[[K]]) {column_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (memref<24xf32>, index) -> vector<32x16xf32>
// CHECK: %[[EACH:.*]] = vector.broadcast %[[K]] : index to vector<32xindex>
// CHECK: %[[RES:.*]] = "tc.load_rows"(%arg3, %[[N:.*]], %[[P:.*]], %[[Q:.*]], %[[EACH]]) {column_dim = 3 : i64, operandSegmentSizes = array<i32: 1, 4>} : (memref<1x5x6x24xf16>, vector<32xindex>, vector<32xindex>, vector<32xindex>, vector<32xindex>) -> vector<32x16xf16>
// CHECK: arith.addf %{{.*}}, %[[BIAS]]
// CHECK: %[[OUT:.*]] = arith.truncf
// CHECK: "tc.store_lanes"(%[[OUT]], %arg4, %[[N]], %[[P]], %[[Q]], %[[K]])
// Its output is a matrix of pixels; what it reads beside the sums has a place for each lane.
// GEMM-LABEL: func.func @block(
// GEMM-SAME: tc.grid = array<i64: 1, 1, 1>
// GEMM: %[[Y:.*]] = memref.collapse_shape %arg4 {{\[\[}}0, 1, 2], [3]] : memref<1x5x6x24xf16> into memref<30x24xf16>
// GEMM: "tc.tmem_ld"
// GEMM: "tc.load_rows"(%arg2, %{{.*}}) {column_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1>}
// GEMM: "tc.load_rows"(%arg3, %{{.*}}) {column_dim = 3 : i64, operandSegmentSizes = array<i32: 1, 4>} : (memref<1x5x6x24xf16>, vector<32xindex>, vector<32xindex>, vector<32xindex>, vector<32xindex>) -> vector<32x16xf16>
// GEMM: %[[H:.*]] = arith.truncf
// GEMM-NEXT: "tc.store_rows"(%[[H]], %[[Y]], %{{.*}}, %{{.*}}) {{{.*}}row_dim = 0 : i64, rows = 32 : i64}
// Rows of pixels follow each other: lanes go along dimension 2.
// ROWS-LABEL: func.func @block(
// ROWS: "tc.load_rows"(%arg2, %[[K:.*]]) {column_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1>}
// ROWS: "tc.load_rows"(%arg3, %[[N:.*]], %[[P:.*]], %[[Q:.*]], %[[K]]) {column_dim = 3 : i64, operandSegmentSizes = array<i32: 1, 4>, row_dim = 2 : i64}
// ROWS: "tc.store_rows"(%{{.*}}, %arg4, %[[N]], %[[P]], %[[Q]], %[[K]]) {{{.*}}row_dim = 2 : i64, rows = 30 : i64}
func.func @block(%x: tensor<1x5x6x16xf16>, %w: tensor<3x3x16x24xf16>, %bias: tensor<24xf32>, %r: tensor<1x5x6x24xf16>) -> tensor<1x5x6x24xf16> {
  %s = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"} : (tensor<1x5x6x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x5x6x24xf32>
  %y = "tc.epilogue"(%s) ({
  ^bb0(%sum: f32):
    %b = "tc.element"(%bias) {map = affine_map<(n, p, q, k) -> (k)>} : (tensor<24xf32>) -> f32
    %e = "tc.element"(%r) {map = affine_map<(n, p, q, k) -> (n, p, q, k)>} : (tensor<1x5x6x24xf16>) -> f16
    %u = arith.addf %sum, %b : f32
    %f = arith.extf %e : f16 to f32
    %v = arith.addf %u, %f : f32
    %h = arith.truncf %v : f32 to f16
    "tc.yield"(%h) : (f16) -> ()
  }) : (tensor<1x5x6x24xf32>) -> tensor<1x5x6x24xf16>
  return %y : tensor<1x5x6x24xf16>
}

// -----

// Gate and value: half as many channels stored, from half the column.
// CHECK-LABEL: func.func @gated(
// CHECK: vector.deinterleave
// CHECK: "tc.store_lanes"({{.*}}) {{.*}} : (vector<32x8xf32>, memref<1x4x4x16xf32>
// GEMM-LABEL: func.func @gated(
// GEMM: arith.divui
// GEMM: vector.deinterleave
// GEMM: "tc.store_rows"({{.*}}) {{.*}} : (vector<32x8xf32>, memref<16x16xf32>
// ROWS-LABEL: func.func @gated(
// ROWS: arith.divui
// ROWS: vector.deinterleave
// ROWS: "tc.store_rows"
func.func @gated(%x: tensor<1x4x4x16xf16>, %w: tensor<1x1x16x32xf16>) -> tensor<1x4x4x16xf32> {
  %s = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x4x4x16xf16>, tensor<1x1x16x32xf16>) -> tensor<1x4x4x32xf32>
  %y = "tc.epilogue"(%s) ({
  ^bb0(%gate: f32, %value: f32):
    %u = arith.mulf %gate, %value : f32
    "tc.yield"(%u) : (f32) -> ()
  }) : (tensor<1x4x4x32xf32>) -> tensor<1x4x4x16xf32>
  return %y : tensor<1x4x4x16xf32>
}
