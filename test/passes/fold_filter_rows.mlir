// fold-filter-rows: TMA loads the pixels of all taps of a filter row at once.
// RUN: %tc-opt %s --split-input-file --fold-filter-rows | %filecheck %s
// RUN: %tc-opt %s --split-input-file --fold-filter-rows 2>&1 | %filecheck %s --check-prefix=REMARK
// RUN: %tc-opt %s --split-input-file --fold-filter-rows="{wgmma=true}" | %filecheck %s --check-prefix=TMEM
// RUN: %tc-opt %s --split-input-file --target=sm_90a --fold-filter-rows="{wgmma=true}" | %filecheck %s

// ResNet's stem: pixels of 8 bytes, two of which are a stride of a tensor map.
// CHECK-LABEL: func.func @stem(
// CHECK: %[[X:.*]] = "tc.repack"(%arg0) {low = array<i64: 0, 0, 3, 0>, permutation = array<i64: 0, 1, 2, 3>} : (tensor<1x224x224x3xf16>) -> tensor<1x224x230x4xf16>
// CHECK: %[[W:.*]] = "tc.repack"(%arg1) {permutation = array<i64: 0, 1, 2, 3>} : (tensor<7x7x3x64xf16>) -> tensor<7x7x4x64xf16>
// CHECK-NOT: tc.repack
// CHECK: "tc.conv2d"(%[[X]], %[[W]]) {dilations = array<i64: 1, 1>, filter = "hwcf", pads = array<i64: 3, 3, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x224x230x4xf16>, tensor<7x7x4x64xf16>) -> tensor<1x112x112x64xf32>
// REMARK: remark: all 7 taps of a filter row are loaded at once, as 28 adjacent elements (C = 4): 7 steps of the main loop instead of 49
// TMEM-LABEL: func.func @stem(
// TMEM: -> tensor<1x224x224x8xf16>
func.func @stem(%x: tensor<1x224x224x3xf16>, %w: tensor<7x7x3x64xf16>) -> tensor<1x112x112x64xf32> {
  %a = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>} : (tensor<1x224x224x3xf16>) -> tensor<1x224x224x8xf16>
  %b = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>} : (tensor<7x7x3x64xf16>) -> tensor<64x7x7x8xf16>
  %y = "tc.conv2d"(%a, %b) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 3, 3, 3, 3>, filter = "fhwc"} : (tensor<1x224x224x8xf16>, tensor<64x7x7x8xf16>) -> tensor<1x112x112x64xf32>
  return %y : tensor<1x112x112x64xf32>
}

// -----

// Stride 1, channels first: 16 bytes a pixel, and a filter that has its outputs first.
// CHECK-LABEL: func.func @first(
// CHECK: "tc.repack"(%arg0) {low = array<i64: 0, 0, 1, 0>, permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x9x11xbf16>) -> tensor<2x9x13x8xbf16>
// CHECK: "tc.repack"(%arg1) {permutation = array<i64: 2, 3, 1, 0>} : (tensor<24x3x3x3xbf16>) -> tensor<3x3x8x24xbf16>
// CHECK: pads = array<i64: 1, 1, 0, 0>
func.func @first(%x: tensor<2x3x9x11xbf16>, %w: tensor<24x3x3x3xbf16>) -> tensor<2x9x11x24xf32> {
  %a = "tc.repack"(%x) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x9x11xbf16>) -> tensor<2x9x11x8xbf16>
  %b = "tc.repack"(%w) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<24x3x3x3xbf16>) -> tensor<24x3x3x8xbf16>
  %y = "tc.conv2d"(%a, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "fhwc"} : (tensor<2x9x11x8xbf16>, tensor<24x3x3x8xbf16>) -> tensor<2x9x11x24xf32>
  return %y : tensor<2x9x11x24xf32>
}

// -----

// Four channels at stride 2 without padding can be loaded as they are.
// CHECK-LABEL: func.func @as_it_is(
// CHECK-NOT: tc.repack
// CHECK: "tc.conv2d"(%arg0, %arg1) {{.*}}filter = "hwcf"
func.func @as_it_is(%x: tensor<1x9x10x4xf16>, %w: tensor<3x3x4x16xf16>) -> tensor<1x4x4x16xf32> {
  %a = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>} : (tensor<1x9x10x4xf16>) -> tensor<1x9x10x8xf16>
  %b = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>} : (tensor<3x3x4x16xf16>) -> tensor<16x3x3x8xf16>
  %y = "tc.conv2d"(%a, %b) {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"} : (tensor<1x9x10x8xf16>, tensor<16x3x3x8xf16>) -> tensor<1x4x4x16xf32>
  return %y : tensor<1x4x4x16xf32>
}

// -----

// Left alone: a dilated row, and one tap a row.
// CHECK-LABEL: func.func @dilated(
// CHECK: -> tensor<1x9x11x8xf16>
func.func @dilated(%x: tensor<1x9x11x3xf16>, %w: tensor<3x3x3x16xf16>) -> tensor<1x9x7x16xf32> {
  %a = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>} : (tensor<1x9x11x3xf16>) -> tensor<1x9x11x8xf16>
  %b = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>} : (tensor<3x3x3x16xf16>) -> tensor<16x3x3x8xf16>
  %y = "tc.conv2d"(%a, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 2>, pads = array<i64: 1, 1, 0, 0>, filter = "fhwc"} : (tensor<1x9x11x8xf16>, tensor<16x3x3x8xf16>) -> tensor<1x9x7x16xf32>
  return %y : tensor<1x9x7x16xf32>
}

// -----

// CHECK-LABEL: func.func @one_tap(
// CHECK: -> tensor<1x9x11x8xf16>
func.func @one_tap(%x: tensor<1x9x11x3xf16>, %w: tensor<1x1x3x16xf16>) -> tensor<1x9x11x16xf32> {
  %a = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>} : (tensor<1x9x11x3xf16>) -> tensor<1x9x11x8xf16>
  %b = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>} : (tensor<1x1x3x16xf16>) -> tensor<16x1x1x8xf16>
  %y = "tc.conv2d"(%a, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"} : (tensor<1x9x11x8xf16>, tensor<16x1x1x8xf16>) -> tensor<1x9x11x16xf32>
  return %y : tensor<1x9x11x16xf32>
}

// -----

// Bytes: wgmma does not transpose their filters. Ten outputs: their rows are no multiple of 16 bytes.
// CHECK-LABEL: func.func @bytes(
// CHECK: -> tensor<1x9x11x16xi8>
func.func @bytes(%x: tensor<1x9x11x3xi8>, %w: tensor<3x3x3x16xi8>) -> tensor<1x7x9x16xi32> {
  %a = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>} : (tensor<1x9x11x3xi8>) -> tensor<1x9x11x16xi8>
  %b = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>} : (tensor<3x3x3x16xi8>) -> tensor<16x3x3x16xi8>
  %y = "tc.conv2d"(%a, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"} : (tensor<1x9x11x16xi8>, tensor<16x3x3x16xi8>) -> tensor<1x7x9x16xi32>
  return %y : tensor<1x7x9x16xi32>
}

// -----

// CHECK-LABEL: func.func @ten_outputs(
// CHECK: -> tensor<1x9x11x8xf16>
func.func @ten_outputs(%x: tensor<1x9x11x3xf16>, %w: tensor<3x3x3x10xf16>) -> tensor<1x7x9x10xf32> {
  %a = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>} : (tensor<1x9x11x3xf16>) -> tensor<1x9x11x8xf16>
  %b = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>} : (tensor<3x3x3x10xf16>) -> tensor<10x3x3x8xf16>
  %y = "tc.conv2d"(%a, %b) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"} : (tensor<1x9x11x8xf16>, tensor<10x3x3x8xf16>) -> tensor<1x7x9x10xf32>
  return %y : tensor<1x7x9x10xf32>
}
