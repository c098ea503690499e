// fold-constant-launches: what reads constants only is executed at compile time.
// RUN: %tc-opt %s --split-input-file --fold-constant-launches | %filecheck %s
// RUN: %tc-opt %s --split-input-file --fold-constant-launches 2>&1 | %filecheck %s --check-prefix=REMARK

// Input 0, weights 1, result 2, workspaces 3 (input) and 4 (weights): the packed weights are 1, the result stays 2.
// REMARK: remark: @f_repack1 reads constants only: executed now, its result of 32 bytes is a constant
// CHECK: module attributes {tc.constants = [dense<{{\[\[}}1.000000e+00, 3.000000e+00, 5.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], [2.000000e+00, 4.000000e+00, 6.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00]]> : tensor<2x8xf16>], tc.folded = ["f_repack1"], tc.workspaces = array<i64: 128>}
// CHECK: func.func @f_repack0({{.*}}) -> tensor<8x8xf16> attributes {tc.args = array<i64: 0, 3>, tc.order = 0 : i64}
// CHECK-NOT: @f_repack1(
// CHECK: func.func @f(%{{.*}}: tensor<8x8xf16>, %{{.*}}: tensor<2x8xf16>) -> tensor<8x2xf32> attributes {tc.args = array<i64: 3, 1, 2>, tc.order = 1 : i64}
module attributes {tc.constants = [dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf16>], tc.workspaces = array<i64: 128, 32>} {
  func.func @f_repack0(%x: tensor<8x3xf16>) -> tensor<8x8xf16> attributes {tc.args = array<i64: 0, 3>, tc.order = 0 : i64} {
    %p = "tc.repack"(%x) {permutation = array<i64: 0, 1>} : (tensor<8x3xf16>) -> tensor<8x8xf16>
    return %p : tensor<8x8xf16>
  }
  func.func @f_repack1(%w: tensor<3x2xf16>) -> tensor<2x8xf16> attributes {tc.args = array<i64: 1, 4>, tc.order = 1 : i64} {
    %p = "tc.repack"(%w) {permutation = array<i64: 1, 0>} : (tensor<3x2xf16>) -> tensor<2x8xf16>
    return %p : tensor<2x8xf16>
  }
  func.func @f(%x: tensor<8x8xf16>, %w: tensor<2x8xf16>) -> tensor<8x2xf32> attributes {tc.args = array<i64: 3, 4, 2>, tc.order = 2 : i64} {
    %c = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<8x8xf16>, tensor<2x8xf16>) -> tensor<8x2xf32>
    return %c : tensor<8x2xf32>
  }
}

// -----

// Weights that are also read as they are stay, before what is made of them. A launch of a launch of constants is
// folded, too.
// CHECK: module attributes {tc.constants = [dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>, dense<[4.000000e+00, 8.000000e+00]> : tensor<2xf32>], tc.folded = ["g_0", "g_1"], tc.workspaces = array<i64>}
// CHECK-NEXT: func.func @g_2({{.*}}) -> tensor<2xf32> attributes {tc.args = array<i64: 0, 1, 2, 3>, tc.simt}
module attributes {tc.constants = [dense<[1.0, 2.0]> : tensor<2xf32>], tc.workspaces = array<i64: 8, 8>} {
  func.func @g_0(%w: tensor<2xf32>) -> tensor<2xf32> attributes {tc.args = array<i64: 1, 3>, tc.order = 0 : i64, tc.simt} {
    %y = arith.addf %w, %w : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @g_1(%w: tensor<2xf32>) -> tensor<2xf32> attributes {tc.args = array<i64: 3, 4>, tc.order = 1 : i64, tc.simt} {
    %y = arith.addf %w, %w : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @g_2(%x: tensor<2xf32>, %w: tensor<2xf32>, %v: tensor<2xf32>) -> tensor<2xf32> attributes {tc.args = array<i64: 0, 1, 4, 2>, tc.order = 2 : i64, tc.simt} {
    %s = arith.addf %x, %w : tensor<2xf32>
    %y = arith.addf %s, %v : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

// A result is written by a launch, and what reads an input, too, is none of constants.
// CHECK: module attributes {tc.constants = [dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>], tc.workspaces = array<i64: 8>}
// CHECK: func.func @h_0
// CHECK: func.func @h_1
// CHECK: func.func @h_2
module attributes {tc.constants = [dense<[1.0, 2.0]> : tensor<2xf32>], tc.workspaces = array<i64: 8>} {
  func.func @h_0(%w: tensor<2xf32>) -> tensor<2xf32> attributes {tc.args = array<i64: 1, 2>, tc.order = 0 : i64, tc.simt} {
    %y = arith.addf %w, %w : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @h_1(%x: tensor<2xf32>, %w: tensor<2xf32>) -> tensor<2xf32> attributes {tc.args = array<i64: 0, 1, 4>, tc.order = 1 : i64, tc.simt} {
    %y = arith.addf %x, %w : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @h_2(%x: tensor<2xf32>) -> tensor<2xf32> attributes {tc.args = array<i64: 4, 3>, tc.order = 2 : i64, tc.simt} {
    %y = arith.addf %x, %x : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}
