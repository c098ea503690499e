// RUN: %tc-opt %s --split-input-file --split-launches | %filecheck %s
// RUN: %tc-opt %s --split-input-file --split-launches --convert-repack-to-simt | %filecheck %s --check-prefix=SIMT

// Inputs 0 and 1, result 2, workspaces 3 (the image) and 4 (the filter).
// CHECK: module attributes {tc.workspaces = array<i64: 4480, 6144>}
// CHECK: func.func @conv_repack0(%[[X:.*]]: tensor<1x7x10x3xf16>) -> tensor<1x7x10x32xf16> attributes {tc.args = array<i64: 0, 3>, tc.order = 0 : i64}
// CHECK-NEXT: "tc.repack"(%[[X]]) {permutation = array<i64: 0, 1, 2, 3>}
// CHECK: func.func @conv_repack1(%{{.*}}: tensor<2x3x3x16xf16>) -> tensor<16x2x3x32xf16> attributes {tc.args = array<i64: 1, 4>, tc.order = 1 : i64}
// CHECK: func.func @conv(%[[A:.*]]: tensor<1x7x10x32xf16>, %[[B:.*]]: tensor<16x2x3x32xf16>) -> tensor<1x6x8x16xf32> attributes {tc.args = array<i64: 3, 4, 2>, tc.order = 2 : i64}
// CHECK-NEXT: "tc.conv2d"(%[[A]], %[[B]])

// SIMT: func.func @conv(
// SIMT: gpu.module @kernels
// SIMT: llvm.func @conv_repack0(%{{.*}}: !llvm.ptr<1>{{.*}}, %{{.*}}: !llvm.ptr<1>
// SIMT-SAME: tc.grid = array<i64: 9, 1, 1>
// SIMT-SAME: tc.order = 0 : i64
// SIMT: llvm.func @conv_repack1
func.func @conv(%x: tensor<1x7x10x3xf16>, %w: tensor<2x3x3x16xf16>) -> tensor<1x6x8x16xf32> {
  %a = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>} : (tensor<1x7x10x3xf16>) -> tensor<1x7x10x32xf16>
  %b = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>} : (tensor<2x3x3x16xf16>) -> tensor<16x2x3x32xf16>
  %y = "tc.conv2d"(%a, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"} : (tensor<1x7x10x32xf16>, tensor<16x2x3x32xf16>) -> tensor<1x6x8x16xf32>
  return %y : tensor<1x6x8x16xf32>
}

// -----

// One op needs no sequence.
// CHECK-LABEL: func.func @alone(
// CHECK-NOT: tc.order
func.func @alone(%x: tensor<1x7x10x8xf16>, %w: tensor<16x2x3x8xf16>) -> tensor<1x6x8x16xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"} : (tensor<1x7x10x8xf16>, tensor<16x2x3x8xf16>) -> tensor<1x6x8x16xf32>
  return %y : tensor<1x6x8x16xf32>
}
