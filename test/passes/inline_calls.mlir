// Calls of private functions are inlined by the first pass that looks at a whole function.
// RUN: %tc-opt %s --fold-layouts | %filecheck %s
// RUN: %tc-opt %s --split-layers 2>/dev/null | %filecheck %s

// CHECK-NOT: @layer
// CHECK-LABEL: func.func @once(
// CHECK: linalg.matmul
// CHECK-NOT: func.call
func.func private @layer(%x: tensor<16x8xf16>, %w: tensor<8x32xf16>) -> tensor<16x32xf32> {
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  %c = linalg.matmul ins(%x, %w : tensor<16x8xf16>, tensor<8x32xf16>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %c : tensor<16x32xf32>
}
func.func @once(%x: tensor<16x8xf16>, %w: tensor<8x32xf16>) -> tensor<16x32xf32> {
  %y = func.call @layer(%x, %w) : (tensor<16x8xf16>, tensor<8x32xf16>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}
