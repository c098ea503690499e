// What has a dimension of size 0 is not computed: sums of nothing are what they start from.
// RUN: %tc-opt %s --split-input-file --fold-empty --verify-diagnostics | %filecheck %s
// RUN: %tc-opt %s --split-input-file --fold-empty --split-layers 2>/dev/null | %filecheck %s --check-prefix=SPLIT

// CHECK-LABEL: func.func @accumulator(
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<40x96xf32>, %{{[a-z0-9]+}}: tensor<0x7xf32>) -> (tensor<40x96xf32>, tensor<0x7xf32>)
// CHECK-NOT: matmul
// CHECK: %[[SUMS:.*]] = linalg.copy ins(%[[C]]
// CHECK-NOT: math.exp
// CHECK: %[[NONE:.*]] = tensor.empty() : tensor<0x7xf32>
// CHECK-NEXT: return %[[SUMS]], %[[NONE]]
// SPLIT: func.func @accumulator_0_copy({{.*}} attributes {tc.args = array<i64: 2, 4>, tc.simt}
// SPLIT-NOT: func.func
func.func @accumulator(%a: tensor<40x0xf16>, %b: tensor<0x96xf16>, %c: tensor<40x96xf32>, %x: tensor<0x7xf32>) -> (tensor<40x96xf32>, tensor<0x7xf32>) {
  // expected-remark @+1 {{linalg.matmul has loops without iterations: its result is the initial value of its output}}
  %sums = linalg.matmul ins(%a, %b : tensor<40x0xf16>, tensor<0x96xf16>) outs(%c : tensor<40x96xf32>) -> tensor<40x96xf32>
  %y = math.exp %x : tensor<0x7xf32>
  return %sums, %y : tensor<40x96xf32>, tensor<0x7xf32>
}

// -----

// An argument that only a fill wrote to is gone with it; no kernel is left.
// CHECK-LABEL: func.func @nothing(
// CHECK-SAME: %{{[a-z0-9]+}}: tensor<0x64xf16>, %{{[a-z0-9]+}}: tensor<64x96xf16>) -> tensor<0x96xf32>
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: return
// SPLIT: module {
// SPLIT-NEXT: gpu.module @kernels {
// SPLIT-NEXT: }
func.func @nothing(%a: tensor<0x64xf16>, %b: tensor<64x96xf16>, %out: tensor<0x96xf32>) -> tensor<0x96xf32> {
  %zero = arith.constant 0.0 : f32
  %i = linalg.fill ins(%zero : f32) outs(%out : tensor<0x96xf32>) -> tensor<0x96xf32>
  %y = linalg.matmul ins(%a, %b : tensor<0x64xf16>, tensor<64x96xf16>) outs(%i : tensor<0x96xf32>) -> tensor<0x96xf32>
  return %y : tensor<0x96xf32>
}

// -----

// CHECK-LABEL: func.func @pieces(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x0xf32>, %[[Y:[a-z0-9]+]]: tensor<3x5xf32>, %[[Z:[a-z0-9]+]]: tensor<3x2xf32>)
// CHECK: %[[ONE:.*]] = tensor.concat dim(1) %[[Z]], %[[Y]]
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: %[[PAD:.*]] = linalg.fill ins(%[[TWO]]
// CHECK: return %[[ONE]], %[[PAD]]
func.func @pieces(%x: tensor<3x0xf32>, %y: tensor<3x5xf32>, %z: tensor<3x2xf32>) -> (tensor<3x7xf32>, tensor<3x4xf32>) {
  %c = tensor.concat dim(1) %z, %x, %y : (tensor<3x2xf32>, tensor<3x0xf32>, tensor<3x5xf32>) -> tensor<3x7xf32>
  %p = tensor.pad %x low[0, 2] high[0, 2] {
  ^bb0(%i: index, %j: index):
    %two = arith.constant 2.0 : f32
    tensor.yield %two : f32
  } : tensor<3x0xf32> to tensor<3x4xf32>
  return %c, %p : tensor<3x7xf32>, tensor<3x4xf32>
}

// -----

// Ops of tc sum from +0.
// CHECK-LABEL: func.func @ops(
// CHECK-COUNT-2: linalg.fill
// CHECK-NOT: tc.
func.func @ops(%a: tensor<40x0xbf16>, %b: tensor<96x0xbf16>, %i: tensor<8x0xi8>, %j: tensor<0x8xi8>) -> (tensor<40x96xf16>, tensor<8x8xi32>) {
  // expected-remark @+1 {{tc.matmul sums no elements: its result is zeros}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x0xbf16>, tensor<96x0xbf16>) -> tensor<40x96xf16>
  // expected-remark @+1 {{tc.matmul sums no elements: its result is zeros}}
  %z = "tc.matmul"(%i, %j) {a_layout = "mk", b_layout = "kn"} : (tensor<8x0xi8>, tensor<0x8xi8>) -> tensor<8x8xi32>
  return %y, %z : tensor<40x96xf16>, tensor<8x8xi32>
}

// -----

// Calls are inlined.
// CHECK-NOT: @layer
// CHECK-LABEL: func.func @calls(
// CHECK: linalg.copy
func.func private @layer(%a: tensor<8x0xf16>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %b = tensor.empty() : tensor<0x8xf16>
  // expected-remark @+1 {{linalg.matmul has loops without iterations: its result is the initial value of its output}}
  %y = linalg.matmul ins(%a, %b : tensor<8x0xf16>, tensor<0x8xf16>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
func.func @calls(%a: tensor<8x0xf16>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %y = func.call @layer(%a, %c) : (tensor<8x0xf16>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// A function whose tensors all have elements stays as it is, whatever it does not use.
// CHECK-LABEL: func.func @whole(
// CHECK: math.exp
// CHECK: math.sqrt
func.func @whole(%x: tensor<4xf32>) -> tensor<4xf32> {
  %unread = math.exp %x : tensor<4xf32>
  %y = math.sqrt %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
