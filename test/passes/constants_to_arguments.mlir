// constants-to-arguments: constant tensors are buffers that no caller passes.
// RUN: %tc-opt %s --split-input-file --constants-to-arguments | %filecheck %s

// A weight and a bias; the zeros that the sums begin with stay, and so does a number added everywhere.
// CHECK: module attributes {tc.constants = [dense<{{\[\[}}1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf16>, dense<[5.000000e+00, 0x7FC00000]> : tensor<2xf32>]}
// CHECK: func.func @linear(%[[X:.*]]: tensor<8x2xf16>, %[[W:.*]]: tensor<2x2xf16>, %[[B:.*]]: tensor<2xf32>) -> tensor<8x2xf32> {
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8x2xf32>
// CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : tensor<8x2xf32>
// CHECK: %[[C:.*]] = linalg.matmul ins(%[[X]], %[[W]] : {{.*}}) outs(%[[ZERO]] :
// CHECK: linalg.broadcast ins(%[[B]] :
// CHECK: arith.mulf %{{.*}}, %[[TWO]]
func.func @linear(%x: tensor<8x2xf16>) -> tensor<8x2xf32> {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf16>
  %b = arith.constant dense<[5.0, 0x7FC00000]> : tensor<2xf32>
  %two = arith.constant dense<2.0> : tensor<8x2xf32>
  %zero = arith.constant dense<0.0> : tensor<8x2xf32>
  %c = linalg.matmul ins(%x, %w : tensor<8x2xf16>, tensor<2x2xf16>) outs(%zero : tensor<8x2xf32>) -> tensor<8x2xf32>
  %e = tensor.empty() : tensor<8x2xf32>
  %r = linalg.broadcast ins(%b : tensor<2xf32>) outs(%e : tensor<8x2xf32>) dimensions = [0]
  %s = arith.addf %c, %r : tensor<8x2xf32>
  %y = arith.mulf %s, %two : tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}

// -----

// Bytes at the end of the file, behind an alignment of 16. The same weight twice is one buffer.
// CHECK: module attributes {tc.constants = [dense<{{\[\[}}1.000000e+00, 2.000000e+00], [3.000000e+00, 4.000000e+00]]> : tensor<2x2xf16>]}
// CHECK: func.func @twice(%[[X:.*]]: tensor<2x2xf16>, %[[W:.*]]: tensor<2x2xf16>) -> tensor<2x2xf16> {
// CHECK-NEXT: arith.addf %[[X]], %[[W]]
// CHECK-NEXT: arith.mulf %{{.*}}, %[[W]]
func.func @twice(%x: tensor<2x2xf16>) -> tensor<2x2xf16> {
  %w = arith.constant dense_resource<w> : tensor<2x2xf16>
  %v = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf16>
  %s = arith.addf %x, %w : tensor<2x2xf16>
  %y = arith.mulf %s, %v : tensor<2x2xf16>
  return %y : tensor<2x2xf16>
}
{-# dialect_resources: { builtin: { w: "0x10000000003C004000420044" } } #-}
// A comment behind dialect_resources.

// -----

// A weight of one number: a product multiplies it, transposed.
// CHECK: module attributes {tc.constants = [dense<3.000000e+00> : tensor<4x8xf16>]}
// CHECK: func.func @ones(%{{.*}}: tensor<8x8xf16>, %{{.*}}: tensor<4x8xf16>)
func.func @ones(%x: tensor<8x8xf16>) -> tensor<8x4xf32> {
  %w = arith.constant dense<3.0> : tensor<4x8xf16>
  %zero = arith.constant dense<0.0> : tensor<8x4xf32>
  %e = tensor.empty() : tensor<8x4xf16>
  %t = linalg.transpose ins(%w : tensor<4x8xf16>) outs(%e : tensor<8x4xf16>) permutation = [1, 0]
  %c = linalg.matmul ins(%x, %t : tensor<8x8xf16>, tensor<8x4xf16>) outs(%zero : tensor<8x4xf32>) -> tensor<8x4xf32>
  return %c : tensor<8x4xf32>
}

// -----

// In a private function: inlined.
// CHECK: module attributes {tc.constants = [dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>]}
// CHECK: func.func @caller(%[[X:.*]]: tensor<2xf32>, %[[B:.*]]: tensor<2xf32>)
// CHECK-NOT: call
func.func @caller(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = func.call @layer(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
func.func private @layer(%x: tensor<2xf32>) -> tensor<2xf32> {
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %y = arith.addf %x, %b : tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// What is returned is copied by a launch.
// CHECK: module attributes {tc.constants = [dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>]}
// CHECK: func.func @returned(%[[B:.*]]: tensor<2xf32>) -> tensor<2xf32> {
// CHECK-NEXT: %[[E:.*]] = tensor.empty()
// CHECK-NEXT: %[[C:.*]] = linalg.copy ins(%[[B]] : tensor<2xf32>) outs(%[[E]] :
// CHECK-NEXT: return %[[C]]
func.func @returned() -> tensor<2xf32> {
  %b = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %b : tensor<2xf32>
}

// -----

// Numbers, indices and what is only filled are none of memory.
// CHECK-NOT: tc.constants
// CHECK: func.func @none(
func.func @none(%x: tensor<2xf32>, %n: tensor<2xindex>) -> (tensor<2xf32>, tensor<2xindex>) {
  %i = arith.constant dense<[1, 2]> : tensor<2xindex>
  %two = arith.constant dense<2.0> : tensor<2xf32>
  %o = arith.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%o : tensor<2xf32>) -> tensor<2xf32>
  %p = arith.mulf %x, %two : tensor<2xf32>
  %y = arith.addf %p, %f : tensor<2xf32>
  %m = arith.addi %n, %i : tensor<2xindex>
  return %y, %m : tensor<2xf32>, tensor<2xindex>
}
