// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s
// RUN: %tc-opt %s --emit=pretty | %filecheck %s --check-prefix=PRETTY

// CHECK-LABEL: func.func @epilogue(
// CHECK: "tc.epilogue"({{.*}}) ({
// CHECK-NEXT: ^bb0(%{{.*}}: f32):
// CHECK-NEXT: "tc.element"(%arg1) {map = #map} : (tensor<192xf32>) -> f32
// CHECK: "tc.yield"(%{{.*}}) : (f16) -> ()
// CHECK-NEXT: }) : (tensor<256x192xf32>) -> tensor<256x192xf16>
// PRETTY: tc.epilogue %arg0 : tensor<256x192xf16> (%[[SUM:.*]]: f32) {
// PRETTY-NEXT: %[[B:.*]] = tc.element %arg1 map=affine_map<(d0, d1) -> (d1)> : f32
// PRETTY-NEXT: arith.addf %[[SUM]], %[[B]]
// PRETTY: tc.yield
// PRETTY-NEXT: }
func.func @epilogue(%sums: tensor<256x192xf32>, %bias: tensor<192xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%sum: f32):
    %b = "tc.element"(%bias) {map = affine_map<(m, n) -> (n)>} : (tensor<192xf32>) -> f32
    %biased = arith.addf %sum, %b : f32
    %rounded = arith.truncf %biased : f32 to f16
    "tc.yield"(%rounded) : (f16) -> ()
  }) : (tensor<256x192xf32>) -> tensor<256x192xf16>
  return
}

// -----

// CHECK-LABEL: func.func @fragments(
// CHECK: "tc.fragment_epilogue"(%arg0, %arg2, %arg2) ({
// CHECK-NEXT: ^bb0(%{{.*}}: f32):
// CHECK-NEXT: "tc.element"(%arg1) {map = #{{.*}}} : (memref<50xf32>) -> f32
// CHECK: "tc.yield"(%{{.*}}) : (f16) -> ()
// CHECK-NEXT: }) {operandSegmentSizes = array<i32: 1, 2>, tails = "inner"} : (!tc.fragment<array<i64: 32, 64>, f32, "C", "mma.m16n8k16.f16">, index, index) -> !tc.fragment<array<i64: 32, 64>, f16, "C", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 32, 64>, f32, "C", "mma.m16n8k16.f16">
!h = !tc.fragment<array<i64: 32, 64>, f16, "C", "mma.m16n8k16.f16">
func.func @fragments(%c: !c, %bias: memref<50xf32>, %i: index) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%sum: f32):
    %b = "tc.element"(%bias) {map = affine_map<(m, n) -> (n)>} : (memref<50xf32>) -> f32
    %biased = arith.addf %sum, %b : f32
    %rounded = arith.truncf %biased : f32 to f16
    "tc.yield"(%rounded) : (f16) -> ()
  }) {tails = "inner", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !h
  return
}
