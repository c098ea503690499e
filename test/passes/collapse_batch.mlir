// collapse-batch: rows that all meet the same matrix are rows of one product, in the same buffers.
// RUN: %tc-opt %s --split-input-file --collapse-batch | %filecheck %s
// RUN: %tc-opt %s --split-input-file --collapse-batch 2>&1 | %filecheck %s --check-prefix=REMARK

// The residual has both dimensions, the bias neither.
// CHECK: #[[BOTH:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK: func.func @layer(%[[A:.*]]: tensor<32x64xf16>, %[[B:.*]]: tensor<256x64xf16>, %[[R:.*]]: tensor<32x256xf32>, %[[BIAS:.*]]: tensor<256xf32>) -> tensor<32x256xf16> attributes {tc.args = array<i64: 0, 1, 2, 3, 4>}
// CHECK: %[[C:.*]] = "tc.matmul"(%[[A]], %[[B]]) {a_layout = "mk", b_layout = "nk"} : (tensor<32x64xf16>, tensor<256x64xf16>) -> tensor<32x256xf32>
// CHECK: "tc.epilogue"(%[[C]])
// CHECK: "tc.element"(%[[R]]) {map = #[[BOTH]]}
// CHECK: "tc.element"(%[[BIAS]]) {map = #[[COLUMN]]}
// REMARK: remark: 4 x 8 rows with the same B are 32 rows of one product
func.func @layer(%a: tensor<4x8x64xf16>, %b: tensor<256x64xf16>, %r: tensor<4x8x256xf32>, %bias: tensor<256xf32>) -> tensor<4x8x256xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<4x8x64xf16>, tensor<256x64xf16>) -> tensor<4x8x256xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %e = "tc.element"(%r) {map = affine_map<(b, m, n) -> (b, m, n)>} : (tensor<4x8x256xf32>) -> f32
    %f = "tc.element"(%bias) {map = affine_map<(b, m, n) -> (n)>} : (tensor<256xf32>) -> f32
    %t = arith.addf %s, %e : f32
    %u = arith.addf %t, %f : f32
    %h = arith.truncf %u : f32 to f16
    "tc.yield"(%h) : (f16) -> ()
  }) : (tensor<4x8x256xf32>) -> tensor<4x8x256xf16>
  return %d : tensor<4x8x256xf16>
}

// -----

// A scale of each row of every matrix: indexed by one of the two dimensions.
// CHECK: func.func @rows(%{{.*}}: tensor<4x8x64xf16>
// CHECK: "tc.matmul"(%{{.*}}, %{{.*}}) {{.*}} : (tensor<4x8x64xf16>, tensor<64x256xf16>) -> tensor<4x8x256xf32>
func.func @rows(%a: tensor<4x8x64xf16>, %b: tensor<64x256xf16>, %r: tensor<8xf32>) -> tensor<4x8x256xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<4x8x64xf16>, tensor<64x256xf16>) -> tensor<4x8x256xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %e = "tc.element"(%r) {map = affine_map<(b, m, n) -> (m)>} : (tensor<8xf32>) -> f32
    %t = arith.mulf %s, %e : f32
    "tc.yield"(%t) : (f32) -> ()
  }) : (tensor<4x8x256xf32>) -> tensor<4x8x256xf32>
  return %d : tensor<4x8x256xf32>
}

// -----

// A matrix each.
// CHECK: func.func @batch(%{{.*}}: tensor<4x8x64xf16>
func.func @batch(%a: tensor<4x8x64xf16>, %b: tensor<4x64x256xf16>) -> tensor<4x8x256xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<4x8x64xf16>, tensor<4x64x256xf16>) -> tensor<4x8x256xf32>
  return %c : tensor<4x8x256xf32>
}
