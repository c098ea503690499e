// specialise-shapes: dynamic dimensions of arguments get a size; those that follow are computed.
// RUN: %tc-opt %s --split-input-file --specialise-shapes=batch=8 | %filecheck %s

// CHECK-LABEL: func.func @linear(%arg0: tensor<8x32xf16>, %arg1: tensor<32x48xf16>) -> tensor<8x48xf32>
// CHECK-NOT: ?
// CHECK: %[[E:.*]] = tensor.empty() : tensor<8x48xf32>
// CHECK: linalg.matmul ins(%arg0, %arg1 : tensor<8x32xf16>, tensor<32x48xf16>)
func.func @linear(%x: tensor<?x32xf16>, %w: tensor<32x48xf16>) -> tensor<?x48xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x32xf16>
  %e = tensor.empty(%n) : tensor<?x48xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<?x48xf32>) -> tensor<?x48xf32>
  %c = linalg.matmul ins(%x, %w : tensor<?x32xf16>, tensor<32x48xf16>) outs(%i : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %c : tensor<?x48xf32>
}

// -----

// Rows of a batch: 8 times 5.
// CHECK-LABEL: func.func @rows(%arg0: tensor<8x5x32xf16>) -> tensor<40x32xf16>
// CHECK: %[[R:.*]] = tensor.collapse_shape %arg0
// CHECK: return %[[R]] : tensor<40x32xf16>
func.func @rows(%x: tensor<?x5x32xf16>) -> tensor<?x32xf16> {
  %r = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x5x32xf16> into tensor<?x32xf16>
  return %r : tensor<?x32xf16>
}

// -----

// CHECK-LABEL: func.func @static(%arg0: tensor<4xf32>) -> tensor<4xf32>
func.func @static(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
