// RUN: %tc-opt %s --split-input-file --split-launches | %filecheck %s
// RUN: %tc-opt %s --split-input-file --split-launches --convert-to-simt={quantise-apart=false} | %filecheck %s --check-prefix=SIMT
// RUN: %tc-opt %s --split-input-file --split-launches={quantise-apart=true} | %filecheck %s --check-prefix=APART

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
// SIMT-SAME: tc.grid = array<i64: 2, 1, 1>
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

// -----

// A packed workspace has its bytes: 130 rows of 32. The collapsed operand is a shape of buffer 2.
// CHECK: module attributes {tc.workspaces = array<i64: 4160>}
// CHECK: func.func @gemv_pack0(%{{.*}}: tensor<130x64xi8>) -> tensor<130x64xf4E2M1FN> attributes {tc.args = array<i64: 0, 5>, tc.order = 0 : i64}
// CHECK: func.func @gemv(%{{.*}}: tensor<130x64xf4E2M1FN>, %{{.*}}: tensor<130x4xf8E4M3FN>, %{{.*}}: tensor<64xf4E2M1FN>, %{{.*}}: tensor<4xf8E4M3FN>) -> tensor<130xf32> attributes {tc.args = array<i64: 5, 1, 2, 3, 4>, tc.order = 1 : i64}
func.func @gemv(%c: tensor<130x64xi8>, %sa: tensor<130x4xf8E4M3FN>, %b: tensor<4x16xf4E2M1FN>, %sb: tensor<4xf8E4M3FN>) -> tensor<130xf32> {
  %a = "tc.pack_codes"(%c) : (tensor<130x64xi8>) -> tensor<130x64xf4E2M1FN>
  %v = tensor.collapse_shape %b [[0, 1]] : tensor<4x16xf4E2M1FN> into tensor<64xf4E2M1FN>
  %y = "tc.block_scaled_matmul"(%a, %sa, %v, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<130x64xf4E2M1FN>, tensor<130x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>) -> tensor<130xf32>
  return %y : tensor<130xf32>
}

// -----

// Ops of layout alone: the last one has the function's name.
// CHECK-LABEL: func.func @there_pack0(
// CHECK-LABEL: func.func @there(
func.func @there(%c: tensor<8xi8>) -> tensor<8xi8> {
  %a = "tc.pack_codes"(%c) : (tensor<8xi8>) -> tensor<8xf6E2M3FN>
  %d = "tc.unpack_codes"(%a) : (tensor<8xf6E2M3FN>) -> tensor<8xi8>
  return %d : tensor<8xi8>
}

// -----

// An epilogue stays with its product, and brings what it reads.
// CHECK-LABEL: func.func @epilogue_repack0(
// CHECK-LABEL: func.func @epilogue(
// CHECK-SAME: %[[A:.*]]: tensor<16x8xf16>, %[[B:.*]]: tensor<8x8xf16>, %[[BIAS:.*]]: tensor<8xf32>) -> tensor<16x8xf16> attributes {tc.args = array<i64: 4, 1, 2, 3>
// CHECK-NEXT: %[[C:.*]] = "tc.matmul"(%[[A]], %[[B]])
// CHECK-NEXT: %[[E:.*]] = "tc.epilogue"(%[[C]]) ({
// CHECK: "tc.element"(%[[BIAS]])
// CHECK: return %[[E]]
func.func @epilogue(%a: tensor<16x5xf16>, %b: tensor<8x8xf16>, %bias: tensor<8xf32>) -> tensor<16x8xf16> {
  %p = "tc.repack"(%a) {permutation = array<i64: 0, 1>} : (tensor<16x5xf16>) -> tensor<16x8xf16>
  %c = "tc.matmul"(%p, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<16x8xf16>, tensor<8x8xf16>) -> tensor<16x8xf32>
  %e = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %x = "tc.element"(%bias) {map = affine_map<(m, n) -> (n)>} : (tensor<8xf32>) -> f32
    %t = arith.addf %s, %x : f32
    %h = arith.truncf %t : f32 to f16
    "tc.yield"(%h) : (f16) -> ()
  }) : (tensor<16x8xf32>) -> tensor<16x8xf16>
  return %e : tensor<16x8xf16>
}

// -----

// What is quantised is two workspaces, which the next product reads.
// CHECK: tc.workspaces = array<i64: 1280, 512>
// CHECK-LABEL: func.func @twice_part0(
// CHECK-SAME: -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) attributes {tc.args = array<i64: 0, 1, 2, 6, 7>, tc.order = 0 : i64}
// CHECK: tc.matmul
// CHECK: %[[Q:.*]]:2 = "tc.quantise_blocks"(%{{.*}}, %arg2)
// CHECK: return %[[Q]]#0, %[[Q]]#1
// CHECK-LABEL: func.func @twice(
// CHECK-SAME: tc.args = array<i64: 6, 7, 3, 4, 5>, tc.order = 1 : i64
func.func @twice(%a: tensor<40x16xf16>, %b: tensor<64x16xf16>, %norm: tensor<f32>, %w: tensor<32x64xf4E2M1FN>, %sw: tensor<1x1x512xf8E4M3FN>) -> tensor<40x32xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x16xf16>, tensor<64x16xf16>) -> tensor<40x64xf32>
  %q:2 = "tc.quantise_blocks"(%c, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  %y = "tc.block_scaled_matmul"(%q#0, %q#1, %w, %sw) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>, tensor<32x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) -> tensor<40x32xf32>
  return %y : tensor<40x32xf32>
}

// -----

// A quantiser is its product's, or a launch that reads the f32 of workspace 4: 16 rows of 64.
// CHECK-LABEL: func.func @quantised(
// CHECK-NOT: tc.order
// CHECK: "tc.quantise_blocks"
// APART: module attributes {tc.workspaces = array<i64: 4096>}
// APART: func.func @quantised(%{{.*}}: tensor<16x16xf16>, %{{.*}}: tensor<16x64xf16>) -> tensor<16x64xf32> attributes {tc.args = array<i64: 0, 1, 4>, tc.order = 0 : i64}
// APART: func.func @quantised_quantise1(%[[Y:.*]]: tensor<16x64xf32>) -> (tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>) attributes {tc.args = array<i64: 4, 2, 3>, tc.order = 1 : i64}
// APART-NEXT: "tc.quantise_blocks"(%[[Y]])
func.func @quantised(%a: tensor<16x16xf16>, %b: tensor<16x64xf16>) -> (tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>) {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<16x16xf16>, tensor<16x64xf16>) -> tensor<16x64xf32>
  %q, %s = "tc.quantise_blocks"(%c) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<16x64xf32>) -> (tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>)
  return %q, %s : tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>
}
