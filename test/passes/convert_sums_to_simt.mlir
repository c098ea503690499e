// A thread adds the parts of its four elements in order; the epilogue is cloned onto the sums.
// RUN: %tc-opt %s --split-input-file --convert-to-simt | %filecheck %s

// CHECK: gpu.module @kernels
// CHECK: llvm.func @f(%[[PARTS:.*]]: !llvm.ptr<1> {{{.*}}}, %[[BIAS:.*]]: !llvm.ptr<1> {{{.*}}}, %[[OUT:.*]]: !llvm.ptr<1> {{{.*}}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>, tc.grid = array<i64: 1, 1, 1>
// CHECK: %[[I:.*]] = arith.addi
// CHECK: arith.cmpi ult, %[[I]], %c240
// CHECK: %[[N:.*]] = arith.remui %[[I]], %c6
// CHECK: %[[P0:.*]] = llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: arith.addi %{{.*}}, %c960_i64
// CHECK: %[[P1:.*]] = llvm.load {{.*}} -> vector<4xf32>
// CHECK: %[[S1:.*]] = arith.addf %[[P0]], %[[P1]]
// CHECK: arith.addi %{{.*}}, %c1920_i64
// CHECK: %[[P2:.*]] = llvm.load {{.*}} -> vector<4xf32>
// CHECK: %[[S2:.*]] = arith.addf %[[S1]], %[[P2]]
// CHECK: %[[S:.*]] = llvm.extractelement %[[S2]]
// CHECK: %[[B:.*]] = llvm.load {{.*}} -> f32
// CHECK: arith.addf %[[S]], %[[B]]
// CHECK: arith.truncf
// CHECK: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
func.func @f(%p: tensor<3x40x24xf32>, %bias: tensor<24xf32>) -> tensor<40x24xf16> {
  %c = "tc.sum_parts"(%p) : (tensor<3x40x24xf32>) -> tensor<40x24xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %e = "tc.element"(%bias) {map = affine_map<(m, n) -> (n)>} : (tensor<24xf32>) -> f32
    %u = arith.addf %s, %e : f32
    %t = arith.truncf %u : f32 to f16
    "tc.yield"(%t) : (f16) -> ()
  }) : (tensor<40x24xf32>) -> tensor<40x24xf16>
  return %d : tensor<40x24xf16>
}

// -----

// CHECK: gpu.module @kernels
// CHECK: arith.addi %{{.*}}, %{{.*}} : i32
// CHECK: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<1>
func.func @integers(%p: tensor<2x40x24xi32>) -> tensor<40x24xi32> {
  %c = "tc.sum_parts"(%p) : (tensor<2x40x24xi32>) -> tensor<40x24xi32>
  return %c : tensor<40x24xi32>
}

// -----

// Rows of 6 have no whole fours: a thread has one.
// CHECK: gpu.module @kernels
// CHECK: arith.cmpi ult, %{{.*}}, %c240
// CHECK: llvm.load {{.*}} -> f32
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
func.func @narrow(%p: tensor<2x40x6xf32>) -> tensor<40x6xf32> {
  %c = "tc.sum_parts"(%p) : (tensor<2x40x6xf32>) -> tensor<40x6xf32>
  return %c : tensor<40x6xf32>
}
