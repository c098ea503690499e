// fuse-operands: a launch that computes an operand of a product goes into the product's kernel.
// RUN: %tc-opt %s --split-input-file --fuse-operands | %filecheck %s
// RUN: %tc-opt %s --split-input-file --fuse-operands 2>&1 >/dev/null | %filecheck %s --check-prefix=SAID

#all = affine_map<(n, k) -> (n, k)>
#row = affine_map<(n, k) -> (n, 0)>

// Weights of int8, a scale for each row: one launch, without a workspace.
// CHECK: module attributes {tc.workspaces = array<i64>}
// CHECK: func.func @f_1_matmul(%arg0: tensor<300x128xf16>, %arg1: tensor<96x128xi8>, %arg2: tensor<96x1xf16>) -> tensor<300x96xf32>
// CHECK-SAME: tc.args = array<i64: 0, 1, 2, 3>}
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%arg1, %arg2
// CHECK: arith.sitofp
// CHECK: arith.mulf
// CHECK: "tc.matmul"(%arg0, %[[W]])
// SAID: @f_0_mulf becomes part of this kernel, which loads its inputs and computes tensor<96x128xf16> from it tile by tile
module attributes {tc.workspaces = array<i64: 24576>} {
  func.func @f_0_mulf(%w: tensor<96x128xi8>, %s: tensor<96x1xf16>) -> tensor<96x128xf16> attributes {tc.args = array<i64: 1, 2, 4>, tc.order = 0 : i64, tc.simt} {
    %e = tensor.empty() : tensor<96x128xf16>
    %f = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%w, %s : tensor<96x128xi8>, tensor<96x1xf16>) outs(%e : tensor<96x128xf16>) {
    ^bb0(%q: i8, %by: f16, %o: f16):
      %n = arith.sitofp %q : i8 to f16
      %m = arith.mulf %n, %by : f16
      linalg.yield %m : f16
    } -> tensor<96x128xf16>
    return %f : tensor<96x128xf16>
  }
  func.func @f_1_matmul(%x: tensor<300x128xf16>, %f: tensor<96x128xf16>) -> tensor<300x96xf32> attributes {tc.args = array<i64: 0, 4, 3>, tc.order = 1 : i64} {
    %y = "tc.matmul"(%x, %f) {a_layout = "mk", b_layout = "nk"} : (tensor<300x128xf16>, tensor<96x128xf16>) -> tensor<300x96xf32>
    return %y : tensor<300x96xf32>
  }
}

// -----

// Two numbers a byte, scales of groups of 32; the workspace behind it gets another number.
#all = affine_map<(n, g, k) -> (n, g, k)>
#group = affine_map<(n, g, k) -> (n, g, 0)>
#two = affine_map<(n, k, p) -> (n, k, p)>
// CHECK: module attributes {tc.workspaces = array<i64: 3200>}
// CHECK: func.func @f_0_mulf(%arg0: tensor<16x100xf16>) {{.*}}tc.args = array<i64: 5, 4>, tc.order = 0
// CHECK: func.func @f_1_matmul(%arg0: tensor<8x64xf16>, %arg1: tensor<100x32xi8>, %arg2: tensor<100x2x1xf16>)
// CHECK-SAME: tc.args = array<i64: 0, 1, 2, 3>, tc.order = 1
// CHECK: tensor.concat dim(2)
// CHECK: %[[W:.*]] = tensor.collapse_shape {{.*}} : tensor<100x2x32xf16> into tensor<100x64xf16>
// CHECK: "tc.matmul"(%arg0, %[[W]])
// SAID: @f_1_mulf becomes part of this kernel
module attributes {tc.workspaces = array<i64: 12800, 3200>} {
  func.func @f_0_mulf(%x: tensor<16x100xf16>) -> tensor<16x100xf16> attributes {tc.args = array<i64: 6, 4>, tc.order = 0 : i64, tc.simt} {
    return %x : tensor<16x100xf16>
  }
  func.func @f_1_mulf(%w: tensor<100x32xi8>, %s: tensor<100x2x1xf16>) -> tensor<100x2x32xf16> attributes {tc.args = array<i64: 1, 2, 5>, tc.order = 1 : i64, tc.simt} {
    %c4 = arith.constant 4 : i8
    %c15 = arith.constant 15 : i8
    %w3 = tensor.expand_shape %w [[0], [1, 2]] output_shape [100, 32, 1] : tensor<100x32xi8> into tensor<100x32x1xi8>
    %e = tensor.empty() : tensor<100x32x1xi8>
    %low = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w3 : tensor<100x32x1xi8>) outs(%e : tensor<100x32x1xi8>) {
    ^bb0(%q: i8, %o: i8):
      %n = arith.andi %q, %c15 : i8
      linalg.yield %n : i8
    } -> tensor<100x32x1xi8>
    %high = linalg.generic {indexing_maps = [#two, #two], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w3 : tensor<100x32x1xi8>) outs(%e : tensor<100x32x1xi8>) {
    ^bb0(%q: i8, %o: i8):
      %n = arith.shrui %q, %c4 : i8
      linalg.yield %n : i8
    } -> tensor<100x32x1xi8>
    %both = tensor.concat dim(2) %low, %high : (tensor<100x32x1xi8>, tensor<100x32x1xi8>) -> tensor<100x32x2xi8>
    %flat = tensor.collapse_shape %both [[0], [1, 2]] : tensor<100x32x2xi8> into tensor<100x64xi8>
    %groups = tensor.expand_shape %flat [[0], [1, 2]] output_shape [100, 2, 32] : tensor<100x64xi8> into tensor<100x2x32xi8>
    %f0 = tensor.empty() : tensor<100x2x32xf16>
    %f = linalg.generic {indexing_maps = [#all, #group, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%groups, %s : tensor<100x2x32xi8>, tensor<100x2x1xf16>) outs(%f0 : tensor<100x2x32xf16>) {
    ^bb0(%q: i8, %by: f16, %o: f16):
      %n = arith.sitofp %q : i8 to f16
      %m = arith.mulf %n, %by : f16
      linalg.yield %m : f16
    } -> tensor<100x2x32xf16>
    return %f : tensor<100x2x32xf16>
  }
  func.func @f_1_matmul(%x: tensor<8x64xf16>, %f: tensor<100x64xf16>) -> tensor<8x100xf32> attributes {tc.args = array<i64: 0, 5, 3>, tc.order = 2 : i64} {
    %y = "tc.matmul"(%x, %f) {a_layout = "mk", b_layout = "nk"} : (tensor<8x64xf16>, tensor<100x64xf16>) -> tensor<8x100xf32>
    return %y : tensor<8x100xf32>
  }
}
