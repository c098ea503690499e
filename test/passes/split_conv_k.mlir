// split-conv-k: the sums of a convolution in parts, and their sum.
// RUN: %tc-opt %s --split-input-file --target=sm_90a --split-conv-k="{splits=3}" | %filecheck %s
// RUN: %tc-opt %s --split-input-file --target=sm_90a --split-conv-k="{splits=3}" 2>&1 | %filecheck %s --check-prefix=REMARK
// RUN: %tc-opt %s --split-input-file --split-conv-k | %filecheck %s --check-prefix=ONE
// RUN: %tc-opt %s --split-input-file --target=sm_90a --split-conv-k="{splits=1}" | %filecheck %s --check-prefix=ONE
// RUN: %tc-opt %s --split-input-file --target=sm_90a --split-conv-k | %filecheck %s --check-prefix=CHOSEN
// RUN: %tc-opt %s --split-input-file --target=sm_90a --split-conv-k="{cluster=8x1}" | %filecheck %s --check-prefix=CLUSTER
// RUN: %tc-opt %s --split-input-file --split-conv-k="{splits=3}" | %filecheck %s
// RUN: %exits 3 %tc-opt %s --split-input-file --target=sm_90a --split-conv-k="{splits=4}" | %filecheck %s --check-prefix=FOUR
// RUN: %exits 3 %tc-opt %s --split-input-file --target=sm_90a --split-conv-k="{splits=-1}" | %filecheck %s --check-prefix=NEGATIVE
// FOUR: error: {{.*}}expected split-k=1 or one of 3, 9 (all parts must have the same number of the 9 steps), got 4; leave it out
// NEGATIVE: expected split-k of at least 1, or 0 to choose, got -1

// 9 taps of a step each; the epilogue is that of the sum. Few steps are not worth a launch.
// CHECK-LABEL: func.func @f(
// CHECK: %[[P:.*]] = "tc.conv2d"(%arg0, %arg1) {{{.*}}k_part = 192 : i64{{.*}}} : (tensor<1x7x7x64xf16>, tensor<3x3x64x64xf16>) -> tensor<3x1x7x7x64xf32>
// CHECK: %[[C:.*]] = "tc.sum_parts"(%[[P]]) : (tensor<3x1x7x7x64xf32>) -> tensor<1x7x7x64xf32>
// CHECK: "tc.epilogue"(%[[C]])
// REMARK: remark: taps and channels in 3 parts of 3 steps each: 3 times the tiles, and a workspace of 37632 bytes, written and read once
// ONE-LABEL: func.func @f(
// ONE-NOT: tc.sum_parts
// CHOSEN-LABEL: func.func @f(
// CHOSEN-NOT: tc.sum_parts
// CHOSEN: return
func.func @f(%x: tensor<1x7x7x64xf16>, %w: tensor<3x3x64x64xf16>) -> tensor<1x7x7x64xf16> {
  %c = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"} : (tensor<1x7x7x64xf16>, tensor<3x3x64x64xf16>) -> tensor<1x7x7x64xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %t = arith.truncf %s : f32 to f16
    "tc.yield"(%t) : (f16) -> ()
  }) : (tensor<1x7x7x64xf32>) -> tensor<1x7x7x64xf16>
  return %d : tensor<1x7x7x64xf16>
}

// -----

// 72 steps and 16 tiles.
// CHOSEN-LABEL: func.func @long(
// CHOSEN: k_part
// CHOSEN: tc.sum_parts
func.func @long(%x: tensor<8x7x7x512xf16>, %w: tensor<3x3x512x512xf16>) -> tensor<8x7x7x512xf16> {
  %c = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"} : (tensor<8x7x7x512xf16>, tensor<3x3x512x512xf16>) -> tensor<8x7x7x512xf16>
  return %c : tensor<8x7x7x512xf16>
}

// -----

// Tiles of 16 columns are enough for the SMs. CTAs of a cluster of 8 load 16 columns each, of tiles of 128.
// CHOSEN-LABEL: func.func @wide(
// CHOSEN-NOT: tc.sum_parts
// CHOSEN: return
// CLUSTER-LABEL: func.func @wide(
// CLUSTER: k_part = 192
func.func @wide(%x: tensor<1x28x28x128xf16>, %w: tensor<3x3x128x128xf16>) -> tensor<1x28x28x128xf16> {
  %c = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"} : (tensor<1x28x28x128xf16>, tensor<3x3x128x128xf16>) -> tensor<1x28x28x128xf16>
  return %c : tensor<1x28x28x128xf16>
}
