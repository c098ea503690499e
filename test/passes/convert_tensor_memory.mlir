// tcgen05.ld, st and cp of every shape: qualifiers, lanes and offsets.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 65536 : i64} {
  %c0 = arith.constant 0 : index
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 60000 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 64 : i64, address_slot = 60008 : i64, warp = 5 : i64} : () -> !tc.tmem_base
  %t = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !t
  %d = "tc.tmem_tile"(%base) {column = 32 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !d
  %s = "tc.smem_tile"() {offset = 0 : i64} : () -> !s
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%me: index):
    // Row 8 and byte 48: 1072 bytes, 67 units of 16.
    // CHECK: arith.addi %{{.*}}, %c67_i64 : i64
    // CHECK: nvvm.tcgen05.cp %{{.*}} {multicast = #nvvm.tcgen05_cp_multicast<warpx2_02_13>, shape = #nvvm.tcgen05_cp_shape<shape_64x128b>}
    "tc.cp_rows"(%s, %t) {shape = "64x128b", multicast = "warpx2::02_13", row = 8 : i64, byte = 48 : i64, column = 4 : i64} : (!s, !t) -> ()
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%me: index):
    // Lane 16 of the sub-partition is 16 << 16 further.
    // CHECK: arith.addi %{{.*}}, %c1048576_i32 : i32
    // CHECK: nvvm.tcgen05.ld %{{.*}} pack {shape = #nvvm.tcgen05_ldst_shape<shape_16x128b>} : vector<4xi32>
    %v = "tc.tmem_ld_words"(%d, %me, %c0) {shape = "16x128b", upper = true, pack = true} : (!d, index, index) -> vector<32x4xi32>
    "tc.tmem_wait"() {kind = "ld"} : () -> ()
    // CHECK: nvvm.tcgen05.st %{{.*}}, %{{.*}}, %c16_i64 {shape = #nvvm.tcgen05_ldst_shape<shape_16x32bx2>} : vector<4xi32>
    "tc.tmem_st_words"(%v, %d, %me, %c0) {shape = "16x32bx2", upper = false, pack = false, split = 16 : i64} : (vector<32x4xi32>, !d, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
