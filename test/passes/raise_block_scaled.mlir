// RUN: %tc-opt --raise-block-scaled --split-input-file %s | %filecheck %s

// A matrix and a vector; scales indexed by k floordiv 16; the outs argument goes.

// CHECK-LABEL: func.func @matvec(
// CHECK-SAME: %[[A:.*]]: tensor<16x64xf4E2M1FN>, %[[SA:.*]]: tensor<16x4xf8E4M3FN>, %[[B:.*]]: tensor<64xf4E2M1FN>, %[[SB:.*]]: tensor<4xf8E4M3FN>) -> tensor<16xf32>
// CHECK-NEXT: %[[Y:.*]] = "tc.block_scaled_matmul"(%[[A]], %[[SA]], %[[B]], %[[SB]])
// CHECK-SAME: a_scale_layout = "row_major", b_scale_layout = "row_major", block = 16 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>
// CHECK-NEXT: return %[[Y]]
func.func @matvec(%a: tensor<16x64xf4E2M1FN>, %sa: tensor<16x4xf8E4M3FN>, %b: tensor<64xf4E2M1FN>, %sb: tensor<4xf8E4M3FN>, %init: tensor<16xf32>) -> tensor<16xf32> {
%zero = arith.constant 0.0 : f32
%i = linalg.fill ins(%zero : f32) outs(%init : tensor<16xf32>) -> tensor<16xf32>
%y = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k floordiv 16)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (k floordiv 16)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
ins(%a, %sa, %b, %sb : tensor<16x64xf4E2M1FN>, tensor<16x4xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>) outs(%i : tensor<16xf32>) {
^bb0(%xa: f4E2M1FN, %xsa: f8E4M3FN, %xb: f4E2M1FN, %xsb: f8E4M3FN, %sum: f32):
%wa = arith.extf %xa : f4E2M1FN to f32
%wsa = arith.extf %xsa : f8E4M3FN to f32
%wb = arith.extf %xb : f4E2M1FN to f32
%wsb = arith.extf %xsb : f8E4M3FN to f32
%p0 = arith.mulf %wa, %wsa : f32
%p1 = arith.mulf %p0, %wb : f32
%p2 = arith.mulf %p1, %wsb : f32
%s = arith.addf %sum, %p2 : f32
linalg.yield %s : f32
} -> tensor<16xf32>
return %y : tensor<16xf32>
}

// -----

// k as two loops: the operands are collapsed. B written first, loops permuted.

// CHECK-LABEL: func.func @split(
// CHECK-SAME: %[[B:.*]]: tensor<2x3x4x16xf4E2M1FN>, %[[SB:.*]]: tensor<2x3x4xf8E4M3FN>, %[[A:.*]]: tensor<2x16x4x16xf4E2M1FN>, %[[SA:.*]]: tensor<2x16x4xf8E4M3FN>)
// CHECK-DAG: %[[A2:.*]] = tensor.collapse_shape %[[A]] {{\[}}[0], [1], [2, 3]] : tensor<2x16x4x16xf4E2M1FN> into tensor<2x16x64xf4E2M1FN>
// CHECK-DAG: %[[B2:.*]] = tensor.collapse_shape %[[B]] {{\[}}[0], [1], [2, 3]]
// CHECK: "tc.block_scaled_matmul"(%[[A2]], %[[SA]], %[[B2]], %[[SB]])
func.func @split(%b: tensor<2x3x4x16xf4E2M1FN>, %sb: tensor<2x3x4xf8E4M3FN>, %a: tensor<2x16x4x16xf4E2M1FN>, %sa: tensor<2x16x4xf8E4M3FN>, %init: tensor<2x16x3xf32>) -> tensor<2x16x3xf32> {
%zero = arith.constant 0.0 : f32
%i = linalg.fill ins(%zero : f32) outs(%init : tensor<2x16x3xf32>) -> tensor<2x16x3xf32>
%y = linalg.generic {indexing_maps = [affine_map<(n, kb, m, l, ki) -> (l, n, kb, ki)>, affine_map<(n, kb, m, l, ki) -> (l, n, kb)>, affine_map<(n, kb, m, l, ki) -> (l, m, kb, ki)>, affine_map<(n, kb, m, l, ki) -> (l, m, kb)>, affine_map<(n, kb, m, l, ki) -> (l, m, n)>], iterator_types = ["parallel", "reduction", "parallel", "parallel", "reduction"]}
ins(%b, %sb, %a, %sa : tensor<2x3x4x16xf4E2M1FN>, tensor<2x3x4xf8E4M3FN>, tensor<2x16x4x16xf4E2M1FN>, tensor<2x16x4xf8E4M3FN>) outs(%i : tensor<2x16x3xf32>) {
^bb0(%xb: f4E2M1FN, %xsb: f8E4M3FN, %xa: f4E2M1FN, %xsa: f8E4M3FN, %sum: f32):
%wb = arith.extf %xb : f4E2M1FN to f32
%wsb = arith.extf %xsb : f8E4M3FN to f32
%wa = arith.extf %xa : f4E2M1FN to f32
%wsa = arith.extf %xsa : f8E4M3FN to f32
%p0 = arith.mulf %wb, %wsb : f32
%p1 = arith.mulf %p0, %wa : f32
%p2 = arith.mulf %p1, %wsa : f32
%s = arith.addf %sum, %p2 : f32
linalg.yield %s : f32
} -> tensor<2x16x3xf32>
return %y : tensor<2x16x3xf32>
}

// -----

// Global scales after the sum, and a rounding.

// CHECK-LABEL: func.func @scaled(
// CHECK-NEXT: "tc.block_scaled_matmul"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5)
// CHECK-SAME: block = 32 : i64
// CHECK-SAME: -> tensor<16xf16>
func.func @scaled(%a: tensor<16x64xf8E5M2>, %sa: tensor<16x2xf8E8M0FNU>, %b: tensor<64xf6E2M3FN>, %sb: tensor<2xf8E8M0FNU>, %ga: tensor<f32>, %gb: tensor<f32>, %init: tensor<16xf32>) -> tensor<16xf16> {
%zero = arith.constant 0.0 : f32
%i = linalg.fill ins(%zero : f32) outs(%init : tensor<16xf32>) -> tensor<16xf32>
%y = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k floordiv 32)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (k floordiv 32)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
ins(%a, %sa, %b, %sb : tensor<16x64xf8E5M2>, tensor<16x2xf8E8M0FNU>, tensor<64xf6E2M3FN>, tensor<2xf8E8M0FNU>) outs(%i : tensor<16xf32>) {
^bb0(%xa: f8E5M2, %xsa: f8E8M0FNU, %xb: f6E2M3FN, %xsb: f8E8M0FNU, %sum: f32):
%wa = arith.scaling_extf %xa, %xsa : f8E5M2, f8E8M0FNU to f32
%wb = arith.scaling_extf %xb, %xsb : f6E2M3FN, f8E8M0FNU to f32
%p0 = arith.mulf %wa, %wb : f32
%s = arith.addf %sum, %p0 : f32
linalg.yield %s : f32
} -> tensor<16xf32>
%e = tensor.empty() : tensor<16xf32>
%z = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>, affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%y, %ga, %gb : tensor<16xf32>, tensor<f32>, tensor<f32>) outs(%e : tensor<16xf32>) {
^bb0(%x: f32, %p: f32, %q: f32, %o: f32):
%alpha = arith.mulf %p, %q : f32 %r = arith.mulf %x, %alpha : f32
linalg.yield %r : f32 } -> tensor<16xf32>
%t = arith.truncf %z : tensor<16xf32> to tensor<16xf16>
return %t : tensor<16xf16>
}
