// Casts, transposes and reshapes go to the launch of the product that reads them, and fold-layouts folds them there.
// RUN: %tc-opt %s --split-input-file --split-layers | %filecheck %s
// RUN: %tc-opt %s --split-input-file --split-layers --fold-layouts | %filecheck %s --check-prefix=FOLDED

// Stored is what is rounded, not its cast; the reshape and the transposes are in the launch that multiplies them.
// CHECK: func.func @mlp_0_matmul(%{{.*}}: tensor<16x8xf16>, %{{.*}}: tensor<32x8xf16>) -> tensor<16x32xf16> attributes {tc.args = array<i64: 0, 1, 4>, tc.order = 0 : i64}
// CHECK: linalg.transpose
// CHECK: arith.truncf
// CHECK-NEXT: return
// CHECK: func.func @mlp_1_matmul(%[[H:.*]]: tensor<16x32xf16>, %{{.*}}: tensor<8x32xf16>) -> tensor<16x8xf32> attributes {tc.args = array<i64: 4, 2, 3>, tc.order = 1 : i64}
// CHECK: arith.extf %[[H]]
// CHECK: linalg.transpose
// FOLDED-LABEL: func.func @mlp_0_matmul(
// FOLDED: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<16x8xf16>, tensor<32x8xf16>)
// FOLDED-LABEL: func.func @mlp_1_matmul(
// FOLDED: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<16x32xf16>, tensor<8x32xf16>)
// FOLDED-NOT: linalg.transpose
func.func @mlp(%x: tensor<16x8xf16>, %w: tensor<32x8xf16>, %v: tensor<8x32xf16>) -> tensor<16x8xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %last = arith.constant dense<0.0> : tensor<16x8xf32>
  %e = tensor.empty() : tensor<8x32xf16>
  %f = tensor.empty() : tensor<32x8xf16>
  %wt = linalg.transpose ins(%w : tensor<32x8xf16>) outs(%e : tensor<8x32xf16>) permutation = [1, 0]
  %c = linalg.matmul ins(%x, %wt : tensor<16x8xf16>, tensor<8x32xf16>) outs(%zero : tensor<16x32xf32>) -> tensor<16x32xf32>
  %h = arith.truncf %c : tensor<16x32xf32> to tensor<16x32xf16>
  %hw = arith.extf %h : tensor<16x32xf16> to tensor<16x32xf32>
  %vt = linalg.transpose ins(%v : tensor<8x32xf16>) outs(%f : tensor<32x8xf16>) permutation = [1, 0]
  %vw = arith.extf %vt : tensor<32x8xf16> to tensor<32x8xf32>
  %y = linalg.matmul ins(%hw, %vw : tensor<16x32xf32>, tensor<32x8xf32>) outs(%last : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// -----

// A cast of one factor only is computed: both are f32 then.
// CHECK: func.func @mixed_0_extf({{.*}}) -> tensor<16x8xf32> attributes {tc.args = array<i64: 0, 3>, tc.order = 0 : i64, tc.simt}
// CHECK: func.func @mixed_1_matmul(%{{.*}}: tensor<16x8xf32>, %{{.*}}: tensor<8x32xf32>)
func.func @mixed(%x: tensor<16x8xf16>, %w: tensor<8x32xf32>) -> tensor<16x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %xw = arith.extf %x : tensor<16x8xf16> to tensor<16x8xf32>
  %c = linalg.matmul ins(%xw, %w : tensor<16x8xf32>, tensor<8x32xf32>) outs(%zero : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %c : tensor<16x32xf32>
}

// -----

// Behind a reshape the epilogue takes a tensor that is indexed by all of a dimension of the sums (%r), and none that is
// indexed by a part of one (%p).
// CHECK: func.func @positions_0_matmul(%{{.*}}: tensor<16x8xf16>, %{{.*}}: tensor<8x32xf16>, %{{.*}}: tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
// CHECK: arith.addf
// CHECK: func.func @positions_1_addf({{.*}} attributes {{.*}}tc.simt
// FOLDED-LABEL: func.func @positions_0_matmul(
// FOLDED: linalg.generic {{.*}} outs(%{{.*}} : tensor<2x8x32xf32>)
func.func @positions(%x: tensor<16x8xf16>, %w: tensor<8x32xf16>, %r: tensor<2x8x32xf32>, %p: tensor<8x32xf32>) -> tensor<2x8x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x32xf32>
  %c = linalg.matmul ins(%x, %w : tensor<16x8xf16>, tensor<8x32xf16>) outs(%zero : tensor<16x32xf32>) -> tensor<16x32xf32>
  %v = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 8, 32] : tensor<16x32xf32> into tensor<2x8x32xf32>
  %s = arith.addf %v, %r : tensor<2x8x32xf32>
  %e = tensor.empty() : tensor<2x8x32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, s, n) -> (b, s, n)>, affine_map<(b, s, n) -> (s, n)>, affine_map<(b, s, n) -> (b, s, n)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %p : tensor<2x8x32xf32>, tensor<8x32xf32>) outs(%e : tensor<2x8x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x8x32xf32>
  return %y : tensor<2x8x32xf32>
}
