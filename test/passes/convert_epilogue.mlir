// Tensor memory to registers to global memory, clipped.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// 3 x 20 x 24 f16: rows of 48 bytes, so 8 of 16 columns lie inside or outside together, 16 bytes each.
func.func @f(%out: memref<3x20x24xf16>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  // CHECK-DAG: %[[C30:.*]] = arith.constant 30 : i32
  // CHECK-DAG: %[[C3:.*]] = arith.constant 3 : i32
  // CHECK-DAG: %[[C20:.*]] = arith.constant 20 : i32
  // CHECK-DAG: %[[C24:.*]] = arith.constant 24 : i32
  // CHECK-DAG: %[[C16:.*]] = arith.constant 16 : i32
  // CHECK-DAG: %[[C32:.*]] = arith.constant 32 : i32
  // CHECK: %[[LANE:.*]] = arith.andi
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  // CHECK: %[[N:.*]] = nvvm.read.ptx.sreg.ctaid.x
  %n = gpu.block_id x
  %base = "tc.tmem_alloc"() {columns = 32 : i64, address_slot = 0 : i64, warp = 0 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 32>, f32>
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%quarter: index):
    // CHECK: scf.for %[[COL:.*]] = %{{.*}} to %[[C32]] step %[[C16]] : i32
    scf.for %col = %c0 to %c32 step %c16 {
      // lane << 16 | column
      // CHECK: %[[LANES:.*]] = arith.muli %{{.*}}, %[[C32]] : i32
      // CHECK: arith.shli %[[LANES]], %[[C16]] : i32
      // CHECK: %[[RAW:.*]] = nvvm.tcgen05.ld %{{.*}} {shape = #nvvm.tcgen05_ldst_shape<shape_32x32b>} : vector<16xi32>
      // The registers pass through the wait.
      // CHECK: llvm.extractelement %[[RAW]]
      // CHECK: %[[READY:.*]] = llvm.inline_asm has_side_effects "tcgen05.wait::ld.sync.aligned;", "=r,{{.*}},0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
      // CHECK: llvm.extractvalue %[[READY]][0]
      // CHECK: arith.truncf %{{.*}} : vector<16xf32> to vector<16xf16>
      %v = "tc.tmem_ld"(%d, %quarter, %col) : (!tc.tmem<array<i64: 128, 32>, f32>, index, index) -> vector<32x16xf32>
      "tc.tmem_wait"() {kind = "ld"} : () -> ()
      %h = arith.truncf %v : vector<32x16xf32> to vector<32x16xf16>
      // CHECK: arith.cmpi ult, %[[LANE]], %[[C30]] : i32
      // CHECK: arith.cmpi ult, %[[N]], %[[C3]] : i32
      // CHECK: %[[LEFT:.*]] = arith.subi %[[C20]], %{{.*}} : i32
      // CHECK: arith.cmpi ult, %[[LANE]], %[[LEFT]] : i32
      // CHECK: scf.if
      // CHECK: arith.cmpi ult, %[[COL]], %[[C24]] : i32
      // CHECK: scf.if
      // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
      // CHECK: scf.if
      // CHECK: llvm.getelementptr %{{.*}}[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8
      // CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
      // CHECK-NOT: llvm.store
      "tc.store_rows"(%h, %out, %n, %c16, %col) {rows = 30 : i64, row_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 3>} : (vector<32x16xf16>, memref<3x20x24xf16>, index, index, index) -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
