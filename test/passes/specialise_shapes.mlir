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

// -----

// Elementwise ops on tensors themselves, in front of linalg and behind it.
// CHECK-LABEL: func.func @elementwise(%arg0: tensor<8x16xf32>, %arg1: tensor<8x16xi1>) -> tensor<8x16xf32>
// CHECK-NOT: ?
// CHECK-NOT: tensor.cast
// CHECK: math.sqrt %arg0 : tensor<8x16xf32>
// CHECK: arith.addf {{.*}} : tensor<8x16xf32>
// CHECK: linalg.exp
// CHECK: arith.cmpf {{.*}} : tensor<8x16xf32>
// CHECK: arith.select {{.*}} : tensor<8x16xi1>, tensor<8x16xf32>
// CHECK-NEXT: return
func.func @elementwise(%x: tensor<?x16xf32>, %b: tensor<?x16xi1>) -> tensor<?x16xf32> {
  %s = math.sqrt %x : tensor<?x16xf32>
  %t = arith.addf %s, %x : tensor<?x16xf32>
  %c0 = arith.constant 0 : index
  %n = tensor.dim %t, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %z = linalg.exp ins(%t : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %m = arith.cmpf ogt, %z, %x : tensor<?x16xf32>
  %k = arith.andi %m, %b : tensor<?x16xi1>
  %q = arith.select %k, %z, %x : tensor<?x16xi1>, tensor<?x16xf32>
  return %q : tensor<?x16xf32>
}
