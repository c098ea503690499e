// mma with A in tensor and in shared memory, cp, commit; descriptors of K-major and MN-major tiles.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// Instruction descriptors: 128 x 32, f16, both K-major; 128 x 32, bf16, both MN-major.
// CHECK-DAG: %[[IDESC_T:.*]] = arith.constant 134742032 : i32
// CHECK-DAG: %[[IDESC_S:.*]] = arith.constant 134841488 : i32
// Matrix descriptors without the window's start: 128B, SBO 1024; MN-major 128B, SBO 1024, LBO 64 rows of 128 bytes,
// at 20480 and at 36864 in units of 16 bytes.
// CHECK-DAG: %[[K_MAJOR:.*]] = arith.constant 4611756662049472512 : i64
// CHECK-DAG: %[[AM:.*]] = arith.constant 4611756662083028224 : i64
// CHECK-DAG: %[[BM:.*]] = arith.constant 4611756662083029248 : i64
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i64
// CHECK-DAG: %[[C128:.*]] = arith.constant 128 : i64
func.func @f() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 65536 : i64} {
  %true = arith.constant true
  %false = arith.constant false
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 60000 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 64 : i64, address_slot = 60008 : i64, warp = 5 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 32>, f32>
  %t = "tc.tmem_tile"(%base) {column = 32 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f16>
  %a = "tc.smem_tile"() {offset = 0 : i64} : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() {offset = 16384 : i64} : () -> !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
  %am = "tc.smem_tile"() {offset = 20480 : i64} : () -> !tc.smem<array<i64: 128, 64>, bf16, "MN", "128B">
  %bm = "tc.smem_tile"() {offset = 36864 : i64} : () -> !tc.smem<array<i64: 32, 64>, bf16, "MN", "128B">
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%me: index):
    // Slice 1 of A: 32 bytes further in shared memory, 8 columns further in tensor memory.
    // CHECK: %[[A0:.*]] = arith.addi %{{.*}}, %[[K_MAJOR]] : i64
    // CHECK: %[[A1:.*]] = arith.addi %[[A0]], %[[C2]] : i64
    // CHECK: nvvm.tcgen05.cp %{{.*}}, %[[A1]] {shape = #nvvm.tcgen05_cp_shape<shape_128x256b>}
    "tc.cp"(%a, %t) {slice = 1 : i64} : (!tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.tmem<array<i64: 128, 64>, f16>) -> ()
    // CHECK: nvvm.tcgen05.mma %[[D:.*]], %[[T:.*]], %[[B:.*]], %[[IDESC_T]], %{{.*}} {aShift, ctaGroup = #nvvm.cta_group<cta_1>, kind = #nvvm.tcgen05_mma_kind<f16>} : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i32, i1)
    "tc.mma"(%d, %t, %b, %false) {a_slice = 1 : i64, b_slice = 1 : i64, ashift = true} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.tmem<array<i64: 128, 64>, f16>, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">, i1) -> ()
    // Slice 1 of an MN-major tile: 16 rows of K, that is two strides of 1024 bytes.
    // CHECK: %[[AM0:.*]] = arith.addi %{{.*}}, %[[AM]] : i64
    // CHECK: %[[AM1:.*]] = arith.addi %[[AM0]], %[[C128]] : i64
    // CHECK: %[[BM0:.*]] = arith.addi %{{.*}}, %[[BM]] : i64
    // CHECK: %[[BM1:.*]] = arith.addi %[[BM0]], %[[C128]] : i64
    // CHECK: nvvm.tcgen05.mma %{{.*}}, %[[AM1]], %[[BM1]], %[[IDESC_S]], %{{.*}} {ctaGroup = #nvvm.cta_group<cta_1>, kind = #nvvm.tcgen05_mma_kind<f16>} : (!llvm.ptr<6>, i64, i64, i32, i1)
    "tc.mma"(%d, %am, %bm, %true) {a_slice = 1 : i64, b_slice = 1 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, bf16, "MN", "128B">, !tc.smem<array<i64: 32, 64>, bf16, "MN", "128B">, i1) -> ()
    // CHECK: nvvm.tcgen05.commit %{{.*}} : !llvm.ptr<3>
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}
