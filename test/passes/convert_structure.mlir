// Who executes what: the CTA's ops, warp roles, and the address of an allocation.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// CHECK-NOT: func.func
// CHECK: gpu.module @kernels
// CHECK: llvm.mlir.global external @smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @f(%[[OUT:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 192, 1, 1>, tc.grid = array<i64: 3, 2, 1>, tc.params = [{arg = 0 : i64, kind = "pointer"}], tc.smem_bytes = 4096 : i64
func.func @f(%out: memref<8x32x16xf32>) attributes {tc.kernel, tc.grid = array<i64: 3, 2, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 4096 : i64} {
  // CHECK-DAG: %[[C5:.*]] = arith.constant 5 : i32
  // CHECK-DAG: %[[C31:.*]] = arith.constant 31 : i32
  // CHECK: %[[SMEM:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
  // CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x : i32
  // CHECK: %[[WARP:.*]] = arith.shrui %[[TID]], %[[C5]] : i32
  // CHECK: %[[LANE:.*]] = arith.andi %[[TID]], %[[C31]] : i32
  %c0 = arith.constant 0 : index

  // One thread initialises, 8 bytes a slot.
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[TID]], %{{.*}} : i32
  // CHECK: scf.if %[[FIRST]]
  // CHECK-COUNT-2: nvvm.mbarrier.init
  // CHECK-NOT: nvvm.mbarrier.init
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 2048 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>

  // One warp allocates, and gives up the right to.
  // CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[WARP]], %[[C5]] : i32
  // CHECK: scf.if %[[MINE]]
  // CHECK: nvvm.tcgen05.alloc
  // CHECK: nvvm.tcgen05.relinquish_alloc_permit
  %base = "tc.tmem_alloc"() {columns = 32 : i64, address_slot = 2072 : i64, warp = 5 : i64} : () -> !tc.tmem_base
  "tc.tmem_relinquish"() : () -> ()
  %d = "tc.tmem_tile"(%base) {column = 16 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 16>, f32>

  // CHECK: nvvm.fence.mbarrier.init
  // CHECK: nvvm.tcgen05.fence <before>
  "tc.fence"() {kind = "mbarrier_init"} : () -> ()
  "tc.fence"() {kind = "tcgen05.before"} : () -> ()
  // The address is read after the barrier, once.
  // CHECK-NOT: llvm.load
  // CHECK: nvvm.barrier
  // CHECK: %[[SLOT:.*]] = llvm.inttoptr
  // CHECK: %[[BASE:.*]] = llvm.load %[[SLOT]] : !llvm.ptr<3> -> i32
  // CHECK: nvvm.tcgen05.fence <after>
  "tc.cta_barrier"() : () -> ()
  "tc.fence"() {kind = "tcgen05.after"} : () -> ()

  // A role of one thread: its warp, then the elected lane.
  // CHECK: %[[IS4:.*]] = arith.cmpi eq, %[[WARP]]
  // CHECK: scf.if %[[IS4]]
  // CHECK: %[[ELECTED:.*]] = nvvm.elect.sync -> i1
  // CHECK: scf.if %[[ELECTED]]
  "tc.role"() ({
  ^bb0(%w: index):
    %slot = "tc.slot"(%full, %c0) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
    // CHECK: scf.while
    // CHECK: %[[DONE:.*]] = nvvm.mbarrier.try_wait %{{.*}}, %{{.*}} : !llvm.ptr<3>, i32 -> i1
    // CHECK: %[[AGAIN:.*]] = arith.xori %[[DONE]]
    // CHECK: scf.condition(%[[AGAIN]])
    "tc.mbarrier_wait"(%slot, %c0) : (!tc.mbarrier, index) -> ()
    // CHECK: nvvm.mbarrier.arrive.expect_tx
    "tc.mbarrier_expect_tx"(%slot) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()

  // A role of whole warps 1..3; the block argument is the position among them.
  // CHECK: %[[POSITION:.*]] = arith.addi %[[WARP]], %{{.*}} : i32
  // CHECK: %[[IN:.*]] = arith.cmpi ult, %[[POSITION]], %{{.*}} : i32
  // CHECK: scf.if %[[IN]]
  // CHECK-NOT: elect
  // CHECK: arith.muli %[[POSITION]]
  "tc.role"() ({
  ^bb0(%w: index):
    %v = "tc.tmem_ld"(%d, %w, %c0) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
    "tc.tmem_wait"() {kind = "ld"} : () -> ()
    "tc.store_rows"(%v, %out, %c0, %c0, %c0) {rows = 32 : i64, row_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 3>} : (vector<32x16xf32>, memref<8x32x16xf32>, index, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 1, 2, 3>, threads = "warp"} : () -> ()

  // CHECK: nvvm.barrier
  // CHECK-NOT: llvm.load
  // CHECK: %[[TMEM:.*]] = llvm.inttoptr %[[BASE]] : i32 to !llvm.ptr<6>
  // CHECK: nvvm.tcgen05.dealloc %[[TMEM]]
  // CHECK: llvm.return
  "tc.cta_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64} : (!tc.tmem_base) -> ()
  return
}
