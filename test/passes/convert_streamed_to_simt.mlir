// RUN: %tc-opt %s --split-input-file --convert-to-simt=streamed=true | %filecheck %s

// The matrix is read once, past L1, by the path that keeps no order with writes; the few rows stay
// in L1. Two groups of 8 rows and two blocks of K, before the loop and in it.
// CHECK-LABEL: llvm.func @only(
// CHECK-COUNT-2: llvm.inline_asm has_side_effects {{.*}}"ld.global.nc.L1::no_allocate.v4.b32
// CHECK: llvm.load {{.*}} -> vector<4xi32>
// CHECK-COUNT-2: no_allocate
// CHECK-NOT: no_allocate
// CHECK: scf.for
// CHECK-COUNT-4: no_allocate
// CHECK-NOT: no_allocate
module attributes {tc.target = "sm_90a"} {
  func.func @only(%x: tensor<4x512xf16>, %w: tensor<64x512xf16>) -> tensor<4x64xf16> {
    %c = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<4x512xf16>, tensor<64x512xf16>) -> tensor<4x64xf16>
    return %c : tensor<4x64xf16>
  }
}

// -----

// Both matrices are arguments; the few rows of the second launch are the result of the first.
// CHECK-LABEL: llvm.func @first(
// CHECK-COUNT-8: no_allocate
// CHECK-NOT: no_allocate
// CHECK-LABEL: llvm.func @second(
// CHECK-COUNT-8: no_allocate
// CHECK-NOT: no_allocate
module attributes {tc.target = "sm_90a", tc.workspaces = array<i64: 4096>} {
  func.func @first(%x: tensor<4x512xf16>, %w: tensor<512x512xf16>) -> tensor<4x512xf16> attributes {tc.order = 0 : i64, tc.args = array<i64: 0, 1, 4>} {
    %c = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<4x512xf16>, tensor<512x512xf16>) -> tensor<4x512xf16>
    return %c : tensor<4x512xf16>
  }
  func.func @second(%x: tensor<4x512xf16>, %w: tensor<64x512xf16>) -> tensor<4x64xf16> attributes {tc.order = 1 : i64, tc.args = array<i64: 4, 2, 3>} {
    %c = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<4x512xf16>, tensor<64x512xf16>) -> tensor<4x64xf16>
    return %c : tensor<4x64xf16>
  }
}

// -----

// The matrix is the result of another launch, which may still run if this one is programmatic.
// CHECK-LABEL: llvm.func @writes(
// CHECK: no_allocate
// CHECK-LABEL: llvm.func @reads(
// CHECK-NOT: no_allocate
module attributes {tc.target = "sm_90a", tc.workspaces = array<i64: 4096>} {
  func.func @writes(%x: tensor<4x512xf16>, %w: tensor<512x512xf16>) -> tensor<4x512xf16> attributes {tc.order = 0 : i64, tc.args = array<i64: 0, 1, 4>} {
    %c = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<4x512xf16>, tensor<512x512xf16>) -> tensor<4x512xf16>
    return %c : tensor<4x512xf16>
  }
  func.func @reads(%x: tensor<2x512xf16>, %w: tensor<4x512xf16>) -> tensor<2x4xf16> attributes {tc.order = 1 : i64, tc.args = array<i64: 2, 4, 3>} {
    %c = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<2x512xf16>, tensor<4x512xf16>) -> tensor<2x4xf16>
    return %c : tensor<2x4xf16>
  }
}

// -----

// The second launch of the same kernel has the result of the first as its matrix.
// CHECK-LABEL: llvm.func @again(
// CHECK-NOT: no_allocate
module attributes {tc.target = "sm_90a", tc.workspaces = array<i64: 32>,
                   tc.repeats = [{args = array<i64: 0, 3, 2>, kernel = 0 : i64, name = "again_1", of = array<i64: 0, 1, 3>, order = 1 : i64}]} {
  func.func @again(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {tc.order = 0 : i64, tc.args = array<i64: 0, 1, 3>} {
    %c = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %c : tensor<4x4xf32>
  }
}

// -----

// Codes of a matrix, computed by the threads, on both targets.
// CHECK-LABEL: llvm.func @codes(
// CHECK: no_allocate
module attributes {tc.target = "sm_100a"} {
  func.func @codes(%x: tensor<4x512xf16>, %w: tensor<64x512xi8>) -> tensor<4x64xf16> {
    %e = tensor.empty() : tensor<64x512xf16>
    %m = linalg.generic {indexing_maps = [affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n, k)>], iterator_types = ["parallel", "parallel"]} ins(%w : tensor<64x512xi8>) outs(%e : tensor<64x512xf16>) {
    ^bb0(%a: i8, %o: f16):
      %f = arith.sitofp %a : i8 to f16
      linalg.yield %f : f16
    } -> tensor<64x512xf16>
    %c = "tc.matmul"(%x, %m) {a_layout = "mk", b_layout = "nk"} : (tensor<4x512xf16>, tensor<64x512xf16>) -> tensor<4x64xf16>
    return %c : tensor<4x64xf16>
  }
}
