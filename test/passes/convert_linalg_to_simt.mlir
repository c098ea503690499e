// RUN: %tc-opt %s --split-input-file --convert-linalg-to-simt --verify-diagnostics | %filecheck %s

// A thread has a row; its loop takes the elements in order.
// CHECK: llvm.func @rows(%[[X:.*]]: !llvm.ptr<1> {{{.*}}}, %[[Y:.*]]: !llvm.ptr<1> {{{.*}}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>, tc.grid = array<i64: 2, 1, 1>
// CHECK: %[[N:.*]] = arith.addi
// CHECK: scf.if
// CHECK: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[M:.*]] = scf.for %[[K:.*]] = %{{.*}} to %c24{{.*}} iter_args(%[[T:.*]] = %[[LOW]]) -> (f32)
// CHECK: %[[E:.*]] = llvm.load {{.*}} -> f32
// CHECK: %[[MAX:.*]] = arith.maximumf %[[E]], %[[T]]
// CHECK: scf.yield %[[MAX]]
// CHECK: llvm.store %[[M]]
func.func @rows(%x: tensor<300x24xf32>) -> tensor<300xf32> attributes {tc.simt} {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<300xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<300xf32>) -> tensor<300xf32>
  %m = linalg.reduce ins(%x : tensor<300x24xf32>) outs(%i : tensor<300xf32>) dimensions = [1] (%a: f32, %b: f32) {
    %t = arith.maximumf %a, %b : f32
    linalg.yield %t : f32
  }
  return %m : tensor<300xf32>
}

// -----

// Padding is selected, and the load beside the edge stays inside. The window's loops are the inner ones.
// CHECK: llvm.func @pool
// CHECK: scf.for
// CHECK: scf.for
// CHECK: arith.minui
// CHECK: arith.select
// CHECK: arith.maximumf
func.func @pool(%x: tensor<1x6x6x4xf32>) -> tensor<1x3x3x4xf32> attributes {tc.simt} {
  %low = arith.constant 0xFF800000 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 0, 0, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %low : f32
  } : tensor<1x6x6x4xf32> to tensor<1x7x7x4xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<1x3x3x4xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  %y = linalg.pooling_nhwc_max {strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x7x7x4xf32>, tensor<3x3xf32>) outs(%i : tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  return %y : tensor<1x3x3x4xf32>
}

// -----

// Other functions stay.
// CHECK-LABEL: func.func @other(
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = arith.negf %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @bytes(%x: tensor<8xi8>) -> tensor<8xi8> attributes {tc.simt} {
  // expected-error @+1 {{expected static tensors of f32, f16, bf16, i32, i16 with less than 2^31 elements in memory, got tensor<8xi8> (a thread has a number in a register; bytes have none)}}
  %y = arith.addi %x, %x : tensor<8xi8>
  return %y : tensor<8xi8>
}

// -----

func.func @root(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tc.simt} {
  // expected-error @+1 {{got math.rsqrt; no other pipeline takes it: gemm, matmul-warp and the convolutions have contractions}}
  %y = math.rsqrt %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @softmax(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {tc.simt} {
  %e = tensor.empty() : tensor<8x8xf32>
  // expected-error @+1 {{got linalg.softmax; no other pipeline takes it}}
  %y = linalg.softmax dimension(1) ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
