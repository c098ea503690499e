// A loop over the sizes in every thread; with a capacity the group is a quotient.
// RUN: %tc-opt %s --split-input-file --convert-tc-to-nvvm | %filecheck %s

// CHECK-LABEL: llvm.func @contiguous(
// CHECK: %[[T:.*]] = nvvm.read.ptx.sreg.ctaid.x
// CHECK: scf.for %[[N:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[G:.*]] = %{{.*}}, %[[F:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}, %[[TILES:.*]] = %{{.*}}, %[[ROWS:.*]] = %{{.*}}) -> (i32, i32, i32, i32, i32)
// CHECK: %[[SIZE:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: %[[INSIDE:.*]] = arith.subi %[[T]], %[[TILES]]
// CHECK: %[[MINE:.*]] = arith.divui %{{.*}}, %c128
// CHECK: %[[HERE:.*]] = arith.cmpi ult, %[[INSIDE]], %[[MINE]]
// CHECK: %[[G2:.*]] = arith.select %[[HERE]], %[[N]], %[[G]]
// CHECK: arith.addi %[[TILES]], %[[MINE]]
// CHECK: arith.addi %[[ROWS]], %[[SIZE]]
func.func @contiguous(%s: memref<3xi32>) attributes {tc.kernel, tc.grid = array<i64: 4, 1, 1>, tc.block = array<i64: 32, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %t = gpu.block_id x
  %g, %f, %c = "tc.find_group"(%s, %t) : (memref<3xi32>, index) -> (index, index, index)
  return
}

// -----

// CHECK-LABEL: llvm.func @masked(
// CHECK-NOT: scf.for
// CHECK: %[[G:.*]] = arith.divui %{{.*}}, %c2
// CHECK: arith.remui %{{.*}}, %c2
// CHECK: %[[PLACE:.*]] = arith.extui %[[G]]
// CHECK: llvm.load
func.func @masked(%s: memref<3xi32>) attributes {tc.kernel, tc.grid = array<i64: 6, 1, 1>, tc.block = array<i64: 32, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %t = gpu.block_id x
  %g, %f, %c = "tc.find_group"(%s, %t) {capacity = 200 : i64} : (memref<3xi32>, index) -> (index, index, index)
  return
}

// -----

// Ends of groups: the size is a difference, none if that is negative, and the next group begins at the end.
// CHECK-LABEL: llvm.func @ends(
// CHECK: %[[START:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: scf.for %[[N:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[G:.*]] = %{{.*}}, %[[F:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}, %[[TILES:.*]] = %{{.*}}, %[[ROWS:.*]] = %[[START]])
// CHECK: %[[END:.*]] = llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: %[[SIZE:.*]] = arith.subi %[[END]], %[[ROWS]]
// CHECK: arith.maxsi %[[SIZE]], %c0
// CHECK: arith.divui %{{.*}}, %c192
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[END]]
func.func @ends(%s: memref<4xi32>) attributes {tc.kernel, tc.grid = array<i64: 4, 1, 1>, tc.block = array<i64: 32, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %t = gpu.block_id x
  %g, %f, %c = "tc.find_group"(%s, %t) {ends, tile_rows = 192 : i64} : (memref<4xi32>, index) -> (index, index, index)
  return
}
