// split-k: the sums of a product in parts, and their sum.
// RUN: %tc-opt %s --split-input-file --split-k="{splits=3}" | %filecheck %s
// RUN: %tc-opt %s --split-input-file --split-k | %filecheck %s --check-prefix=ONE
// RUN: %tc-opt %s --split-input-file --split-k="{splits=3}" 2>&1 | %filecheck %s --check-prefix=REMARK
// RUN: %exits 3 %tc-opt %s --split-input-file --split-k="{splits=6}" | %filecheck %s --check-prefix=SIX
// RUN: %exits 3 %tc-opt %s --split-input-file --split-k="{splits=-1}" | %filecheck %s --check-prefix=NEGATIVE
// NEGATIVE: expected split-k of at least 1, or 0 to choose, got -1
// SIX: error: split-k must be in [1, 5], got 6: K=300 has 5 steps of 64 elements

// Five steps: 2, 2 and 1. The epilogue is that of the sum.
// CHECK-LABEL: func.func @f(
// CHECK: %[[P:.*]] = "tc.matmul"(%arg0, %arg1) {a_layout = "mk", b_layout = "nk", k_part = 128 : i64} : (tensor<40x300xf16>, tensor<24x300xf16>) -> tensor<3x40x24xf32>
// CHECK: %[[C:.*]] = "tc.sum_parts"(%[[P]]) : (tensor<3x40x24xf32>) -> tensor<40x24xf32>
// CHECK: "tc.epilogue"(%[[C]])
// ONE-LABEL: func.func @f(
// ONE-NOT: tc.sum_parts
// REMARK: remark: K in 3 parts of 2 steps each: 3 times the tiles, and a workspace of 11520 bytes, written and read once
func.func @f(%a: tensor<40x300xf16>, %b: tensor<24x300xf16>) -> tensor<40x24xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x300xf16>, tensor<24x300xf16>) -> tensor<40x24xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %t = arith.truncf %s : f32 to f16
    "tc.yield"(%t) : (f16) -> ()
  }) : (tensor<40x24xf32>) -> tensor<40x24xf16>
  return %d : tensor<40x24xf16>
}

// -----

// The workspace has f32 whatever the result is.
// CHECK-LABEL: func.func @batch(
// CHECK: -> tensor<3x2x40x24xf32>
// CHECK: "tc.sum_parts"(%{{.*}}) : (tensor<3x2x40x24xf32>) -> tensor<2x40x24xbf16>
func.func @batch(%a: tensor<2x40x320xf16>, %b: tensor<2x24x320xf16>) -> tensor<2x40x24xbf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<2x40x320xf16>, tensor<2x24x320xf16>) -> tensor<2x40x24xbf16>
  return %c : tensor<2x40x24xbf16>
}

// -----

// Five steps of 256. Global scales multiply the whole sum, in f32, before it is rounded.
// CHECK-LABEL: func.func @scaled(
// CHECK: %[[P:.*]] = "tc.block_scaled_matmul"(%arg0, %arg1, %arg2, %arg3) {{.*}}k_part = 512 : i64{{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>{{.*}} -> tensor<3x8x16xf32>
// CHECK: %[[C:.*]] = "tc.sum_parts"(%[[P]]) : (tensor<3x8x16xf32>) -> tensor<8x16xf32>
// CHECK: "tc.epilogue"(%[[C]])
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32):
// CHECK-NEXT: %[[A:.*]] = "tc.element"(%arg4) {map = #{{.*}}} : (tensor<f32>) -> f32
// CHECK-NEXT: %[[B:.*]] = "tc.element"(%arg5)
// CHECK-NEXT: %[[ALPHA:.*]] = arith.mulf %[[A]], %[[B]]
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[S]], %[[ALPHA]]
// CHECK-NEXT: %[[R:.*]] = arith.truncf %[[Y]] : f32 to f16
// CHECK-NEXT: "tc.yield"(%[[R]])
func.func @scaled(%a: tensor<8x1280xf4E2M1FN>, %sa: tensor<1x20x512xf8E4M3FN>, %b: tensor<16x1280xf4E2M1FN>, %sb: tensor<1x20x512xf8E4M3FN>, %ga: tensor<f32>, %gb: tensor<f32>) -> tensor<8x16xf16> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %ga, %gb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>} : (tensor<8x1280xf4E2M1FN>, tensor<1x20x512xf8E4M3FN>, tensor<16x1280xf4E2M1FN>, tensor<1x20x512xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<8x16xf16>
  return %c : tensor<8x16xf16>
}

// -----

// An epilogue multiplies first.
// CHECK-LABEL: func.func @scaled_epilogue(
// CHECK: %[[C:.*]] = "tc.sum_parts"(%{{.*}}) : (tensor<3x8x16xf32>) -> tensor<8x16xf32>
// CHECK: "tc.epilogue"(%[[C]])
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32):
// CHECK-NEXT: %[[ALPHA:.*]] = "tc.element"(%arg4)
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[S]], %[[ALPHA]]
// CHECK-NEXT: arith.negf %[[Y]]
// CHECK-NOT: tc.epilogue
func.func @scaled_epilogue(%a: tensor<8x640xf8E4M3FN>, %sa: tensor<1x5x512xf8E8M0FNU>, %b: tensor<16x640xf8E4M3FN>, %sb: tensor<1x5x512xf8E8M0FNU>, %ga: tensor<f32>) -> tensor<8x16xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %ga) {block = 32 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "blocked_128x4", operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>} : (tensor<8x640xf8E4M3FN>, tensor<1x5x512xf8E8M0FNU>, tensor<16x640xf8E4M3FN>, tensor<1x5x512xf8E8M0FNU>, tensor<f32>) -> tensor<8x16xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %t = arith.negf %s : f32
    "tc.yield"(%t) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %d : tensor<8x16xf32>
}
