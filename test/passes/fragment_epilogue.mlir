// A tc.epilogue of a product in registers: one tc.fragment_epilogue, and what a thread does.
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=16 block-k=16}' %s | %filecheck --check-prefix=TILE %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=16 block-k=16 copy=cp.async}' --pipeline-cp-async --double-buffer-fragments --plan-staging --convert-tc-to-nvvm --canonicalize --cse %s | %filecheck --check-prefix=THREAD %s

// TILE-LABEL: func.func @f(
// TILE-SAME: %{{.*}}, %{{.*}}, %[[BIAS:.*]]: memref<20xf32>, %[[R:.*]]: memref<32x20xf16>, %[[OUT:.*]]: memref<32x20xf16>)
// TILE: %[[D:.*]] = scf.for
// TILE: %[[E:.*]] = "tc.fragment_epilogue"(%[[D]], %[[M:.*]], %[[N:.*]]) ({
// TILE-NEXT: ^bb0(%[[S:.*]]: f32):
// TILE-NEXT: %[[B:.*]] = "tc.element"(%[[BIAS]]) {map = #{{.*}}} : (memref<20xf32>) -> f32
// TILE-NEXT: %[[H:.*]] = "tc.element"(%[[R]]) {map = #{{.*}}} : (memref<32x20xf16>) -> f16
// TILE-NEXT: arith.addf %[[S]], %[[B]]
// TILE: "tc.yield"(%{{.*}}) : (f16) -> ()
// TILE-NEXT: }) {operandSegmentSizes = array<i32: 1, 2>, tails = "inner"} : (!tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">, index, index) -> !tc.fragment<array<i64: 32, 16>, f16, "C", "mma.m16n8k16.f16">
// TILE: "tc.store_fragment"(%[[E]], %[[OUT]], %[[M]], %[[N]]) {{.*}}tails = "inner"

// Two rows of atoms: the bias of two pairs of columns once, the residual of two pairs of columns of
// rows r and r + 8 for each, in front of their eight sums; nothing beyond column 20.
// THREAD-LABEL: llvm.func @f(
// THREAD-COUNT-4: mma.sync
// THREAD: scf.if %[[LEFT:.*]] -> (vector<2xi32>) {
// THREAD-NEXT: llvm.load {{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// THREAD: scf.if %[[RIGHT:.*]] -> (vector<2xi32>) {
// THREAD: scf.if %[[LEFT]] -> (i32) {
// THREAD-NEXT: llvm.load {{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// THREAD: scf.if %[[LEFT]] -> (i32) {
// THREAD: scf.if %[[RIGHT]] -> (i32) {
// THREAD: scf.if %[[RIGHT]] -> (i32) {
// THREAD-COUNT-8: arith.truncf {{.*}} f32 to f16
// THREAD-COUNT-4: -> (i32) {
// THREAD-COUNT-8: arith.truncf {{.*}} f32 to f16
// THREAD: scf.if %[[LEFT]] {
// THREAD: llvm.store {{.*}} {alignment = 4 : i64} : vector<2xf16>, !llvm.ptr<1>
func.func @f(%a: tensor<32x16xf16>, %b: tensor<16x20xf16>, %bias: tensor<20xf32>, %r: tensor<32x20xf16>) -> tensor<32x20xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<32x16xf16>, tensor<16x20xf16>) -> tensor<32x20xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %x = "tc.element"(%bias) {map = affine_map<(m, n) -> (n)>} : (tensor<20xf32>) -> f32
    %h = "tc.element"(%r) {map = affine_map<(m, n) -> (m, n)>} : (tensor<32x20xf16>) -> f16
    %u = arith.addf %s, %x : f32
    %w = arith.extf %h : f16 to f32
    %v = arith.addf %u, %w : f32
    %t = arith.truncf %v : f32 to f16
    "tc.yield"(%t) : (f16) -> ()
  }) : (tensor<32x20xf32>) -> tensor<32x20xf16>
  return %d : tensor<32x20xf16>
}
