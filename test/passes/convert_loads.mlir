// Global memory to register tiles, clipped: zeros outside.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// 20 x 24 f16: rows of 48 bytes, so 8 of 16 columns lie inside or outside together, 16 bytes each.
func.func @f(%c: memref<20x24xf16>, %row: memref<20xf32>, %turned: memref<24x20xf32>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %m = gpu.block_id y
  %n = arith.constant 16 : index
  %c3 = arith.constant 3 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    // CHECK: %[[LANE:.*]] = arith.andi
    // CHECK: %[[M:.*]] = nvvm.read.ptx.sreg.ctaid.y
    // The row is inside if the tile's first is, and the lane below what is left.
    // CHECK: arith.cmpi ult, %[[M]], %[[END:.*]] : i32
    // CHECK: %[[LEFT:.*]] = arith.subi %[[END]], %[[M]] : i32
    // CHECK: arith.cmpi ult, %[[LANE]], %[[LEFT]] : i32
    // CHECK: %[[WORDS:.*]] = scf.if %{{.*}} -> (vector<4xi32>) {
    // CHECK-NEXT: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
    // CHECK: } else {
    // CHECK-NEXT: arith.constant dense<0> : vector<4xi32>
    // CHECK: llvm.bitcast %[[WORDS]] : vector<4xi32> to vector<8xf16>
    // CHECK: scf.if %{{.*}} -> (vector<4xi32>) {
    // CHECK-NEXT: llvm.getelementptr %{{.*}}[16]
    // CHECK-NOT: llvm.load{{.*}}llvm.load
    %a = "tc.load_rows"(%c, %m, %n) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<20x24xf16>, index, index) -> vector<32x16xf16>
    // Columns alike: a number per thread.
    // CHECK: scf.if %{{.*}} -> (i32) {
    // CHECK-NEXT: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
    // CHECK-COUNT-4: llvm.insertelement
    %b = "tc.load_rows"(%row, %m) {row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (memref<20xf32>, index) -> vector<32x4xf32>
    // Columns along the first dimension: rows of 80 bytes apart, one at a time.
    // CHECK: scf.if
    // CHECK: scf.if
    // CHECK: llvm.getelementptr %{{.*}}[80]
    %t = "tc.load_rows"(%turned, %n, %m) {row_dim = 1 : i64, column_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<24x20xf32>, index, index) -> vector<32x2xf32>
    // A row for each lane: its own index is compared and multiplied, and no lane number is added.
    // CHECK: %[[OWN:.*]] = arith.muli %[[LANE]], %{{.*}} : i32
    // CHECK: arith.cmpi ult, %[[OWN]], %{{.*}} : i32
    // CHECK: arith.addi %{{.*}}, %[[OWN]] : i32
    // CHECK: scf.if %{{.*}} -> (vector<4xi32>) {
    %lane = "tc.lane_index"() : () -> vector<32xindex>
    %three = vector.broadcast %c3 : index to vector<32xindex>
    %own = arith.muli %lane, %three : vector<32xindex>
    %first = vector.broadcast %n : index to vector<32xindex>
    %l = "tc.load_rows"(%c, %own, %first) {column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<20x24xf16>, vector<32xindex>, vector<32xindex>) -> vector<32x16xf16>
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
