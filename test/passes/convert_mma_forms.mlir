// Scale-input-d, collector buffers, .ws, sparse A: operands, qualifiers and instruction descriptors.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// Instruction descriptors: .ws 32 x 128, f16; sparse 128 x 64, f16, selector 1.
// CHECK-DAG: arith.constant 35651600 : i32
// CHECK-DAG: arith.constant 135266325 : i32
!d = !tc.tmem<array<i64: 128, 32>, f32>
!d16 = !tc.tmem<array<i64: 128, 16>, f32>
!wide = !tc.tmem<array<i64: 128, 64>, f32>
!e = !tc.tmem<array<i64: 128, 8>, i32>
!few = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b32 = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!bytes = !tc.tmem<array<i64: 128, 64>, i8>
!half = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!packed = !tc.smem<array<i64: 64, 64>, i8, "K", "64B">
!twice = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
func.func @f() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 65536 : i64} {
  %true = arith.constant true
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 60000 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 128 : i64, address_slot = 60008 : i64, warp = 5 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !d
  %d16 = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !d16
  %wide = "tc.tmem_tile"(%base) {column = 32 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !wide
  %e = "tc.tmem_tile"(%base) {column = 96 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !e
  %few = "tc.smem_tile"() {offset = 0 : i64} : () -> !few
  %a = "tc.smem_tile"() {offset = 4096 : i64} : () -> !a
  %b = "tc.smem_tile"() {offset = 20480 : i64} : () -> !b
  %twice = "tc.smem_tile"() {offset = 36864 : i64} : () -> !twice
  %codes = "tc.tmem_tile"(%base) {column = 104 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !bytes
  %half = "tc.smem_tile"() {offset = 4096 : i64} : () -> !half
  %packed = "tc.smem_tile"() {offset = 53248 : i64} : () -> !packed
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%me: index):
    // CHECK: nvvm.tcgen05.mma %{{.*}} scale = %{{.*}} {collectorOp = #nvvm.tcgen05_mma_collectorop<fill>
    "tc.mma"(%d, %a, %few, %true) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false, scale_d = 4 : i64, collector = "fill"} : (!d, !a, !b32, i1) -> ()
    // CHECK: nvvm.tcgen05.mma.ws %{{.*}} {collectorBBuffer = #nvvm.tcgen05_mma_collectorb<b2>, collectorOp = #nvvm.tcgen05_mma_collectorop<lastuse>
    "tc.mma_ws"(%d, %few, %b, %true) {a_slice = 0 : i64, b_slice = 1 : i64, buffer = "b2", collector = "lastuse"} : (!d, !few, !b, i1) -> ()
    // CHECK: nvvm.tcgen05.mma.sp
    "tc.mma_sparse"(%wide, %a, %twice, %e, %true) {a_slice = 1 : i64, b_slice = 1 : i64, metadata_column = 2 : i64, selector = 1 : i64} : (!wide, !a, !twice, !e, i1) -> ()
    // CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %c112_i32 : i32
    // CHECK: %[[A:.*]] = llvm.inttoptr %[[SUM]] : i32 to !llvm.ptr<6>
    // CHECK: nvvm.tcgen05.mma.block_scale %{{.*}}, %[[A]], %{{.*}}(!llvm.ptr<6>, !llvm.ptr<6>, i64
    "tc.mma_block_scale"(%wide, %codes, %packed, %codes, %codes, %true) {kind = "mxf4", a_type = "e2m1", b_type = "e2m1", scale_type = "ue8m0", block = 32 : i64, a_slice = 1 : i64, b_slice = 0 : i64, sfa_column = 0 : i64, sfb_column = 0 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64} : (!wide, !bytes, !packed, !bytes, !bytes, i1) -> ()
    // CHECK: nvvm.tcgen05.mma.sp.block_scale %{{.*}}, %{{.*}}, %{{.*}}, %c143656068_i32, %true, %{{.*}}, %{{.*}}, %{{.*}} {
    // CHECK-SAME: (!llvm.ptr<6>, i64, i64, i32, i1, !llvm.ptr<6>, !llvm.ptr<6>, !llvm.ptr<6>)
    "tc.mma_block_scale_sparse"(%wide, %half, %packed, %e, %codes, %codes, %true) {kind = "mxf4", a_type = "e2m1", b_type = "e2m1", scale_type = "ue8m0", block = 32 : i64, a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, sfa_column = 0 : i64, sfb_column = 0 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64} : (!wide, !half, !packed, !e, !bytes, !bytes, i1) -> ()
    // CHECK: nvvm.tcgen05.mma.ws.sp %{{.*}} {collectorBBuffer = #nvvm.tcgen05_mma_collectorb<b1>
    "tc.mma_ws_sparse"(%d16, %few, %twice, %e, %true) {a_slice = 1 : i64, b_slice = 1 : i64, metadata_column = 2 : i64, selector = 1 : i64, buffer = "b1"} : (!d16, !few, !twice, !e, i1) -> ()
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}
