// RUN: %tc-opt %s --split-input-file --join-gates --verify-diagnostics | %filecheck %s

// The launch of the value becomes that of the matrix, in whose 48 rows blocks of 8 alternate; its
// buffer, number 4, has their bytes. The value's epilogue precedes the gate's, which read it.
#same = affine_map<(m, n) -> (m, n)>
// CHECK: module attributes {{{.*}}tc.workspaces = array<i64: 6144>
module attributes {tc.target = "sm_90a", tc.frozen = array<i64: 1, 2>, tc.workspaces = array<i64: 1920>} {
  // CHECK: func.func @up(%[[G:.*]]: tensor<24x64xf16>, %[[U:.*]]: tensor<24x64xf16>) -> tensor<48x64xf16>
  // CHECK-SAME: tc.args = array<i64: 1, 2, 4>, tc.order = 0 : i64, tc.simt
  // CHECK: %[[E:.*]] = tensor.expand_shape %[[G]] {{.*}} into tensor<3x1x8x64xf16>
  // CHECK: %[[F:.*]] = tensor.expand_shape %[[U]] {{.*}} into tensor<3x1x8x64xf16>
  // CHECK: tensor.concat dim(1) %[[E]], %[[F]]
  func.func @up(%x: tensor<40x64xf16>, %w: tensor<24x64xf16>) -> tensor<40x24xf16> attributes {tc.order = 0 : i64, tc.args = array<i64: 0, 2, 4>} {
    %u = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<40x64xf16>, tensor<24x64xf16>) -> tensor<40x24xf16>
    return %u : tensor<40x24xf16>
  }
  // CHECK: func.func @gate(%[[X:.*]]: tensor<40x64xf16>, %[[W:.*]]: tensor<48x64xf16>) -> tensor<40x24xf16>
  // CHECK-SAME: tc.args = array<i64: 0, 4, 3>
  // CHECK: %[[S:.*]] = "tc.matmul"(%[[X]], %[[W]]) {{.*}} -> tensor<40x48xf32>
  // CHECK: "tc.epilogue"(%[[S]]) ({
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
  // CHECK-NEXT: %[[V:.*]] = arith.truncf %[[B]] : f32 to f16
  // CHECK-NEXT: %[[T:.*]] = arith.truncf %[[A]] : f32 to f16
  // CHECK-NEXT: %[[P:.*]] = arith.mulf %[[T]], %[[V]] : f16
  // CHECK-NEXT: "tc.yield"(%[[P]])
  // CHECK-NEXT: }) {gate_block = 8 : i64}
  func.func @gate(%x: tensor<40x64xf16>, %w: tensor<24x64xf16>, %u: tensor<40x24xf16>) -> tensor<40x24xf16> attributes {tc.order = 1 : i64, tc.args = array<i64: 0, 1, 4, 3>} {
    // expected-remark @+1 {{joined with @up, whose result is not stored: tensor<48x64xf16>, gates and values in blocks of 8}}
    %g = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<40x64xf16>, tensor<24x64xf16>) -> tensor<40x24xf32>
    %y = "tc.epilogue"(%g) ({
    ^bb0(%s: f32):
      %v = "tc.element"(%u) {map = #same} : (tensor<40x24xf16>) -> f16
      %t = arith.truncf %s : f32 to f16
      %p = arith.mulf %t, %v : f16
      "tc.yield"(%p) : (f16) -> ()
    }) : (tensor<40x24xf32>) -> tensor<40x24xf16>
    return %y : tensor<40x24xf16>
  }
}

// -----

#same = affine_map<(m, n) -> (m, n)>
// CHECK: func.func @up(
// CHECK-NOT: gate_block
module attributes {tc.target = "sm_90a", tc.frozen = array<i64: 1>, tc.workspaces = array<i64: 1920>} {
  func.func @up(%x: tensor<40x64xf16>, %w: tensor<24x64xf16>) -> tensor<40x24xf16> attributes {tc.order = 0 : i64, tc.args = array<i64: 0, 2, 4>} {
    %u = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<40x64xf16>, tensor<24x64xf16>) -> tensor<40x24xf16>
    return %u : tensor<40x24xf16>
  }
  func.func @gate(%x: tensor<40x64xf16>, %w: tensor<24x64xf16>, %u: tensor<40x24xf16>) -> tensor<40x24xf16> attributes {tc.order = 1 : i64, tc.args = array<i64: 0, 1, 4, 3>} {
    // expected-remark @+1 {{@up stays a launch: the weights are not frozen, and would be copied at each call}}
    %g = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<40x64xf16>, tensor<24x64xf16>) -> tensor<40x24xf32>
    %y = "tc.epilogue"(%g) ({
    ^bb0(%s: f32):
      %v = "tc.element"(%u) {map = #same} : (tensor<40x24xf16>) -> f16
      %t = arith.truncf %s : f32 to f16
      %p = arith.mulf %t, %v : f16
      "tc.yield"(%p) : (f16) -> ()
    }) : (tensor<40x24xf32>) -> tensor<40x24xf16>
    return %y : tensor<40x24xf16>
  }
}
