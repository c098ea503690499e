// A producer that waits for its loads and for nothing else: the third one overwrites the slot that the first mma may
// still read. Nobody waits for the barrier of the mma's commit.
//
//   tc-opt examples/mistakes/producer_without_empty_wait.mlir --pass-pipeline='builtin.module(verify-tc-kernel)'

!a = !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
!b = !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
!d = !tc.tmem<array<i64: 128, 16>, f32>
!bars = !tc.ring<2 : i64, !tc.mbarrier>
func.func @main_loop(%a: memref<128x64xf16>, %b: memref<16x64xf16>, %out: memref<128x16xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %map_a = "tc.make_tensor_map"(%a) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>,
      strides = array<i64: 128>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>,
      corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %map_b = "tc.make_tensor_map"(%b) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 16>,
      strides = array<i64: 128>, box = array<i64: 16, 16>, element_strides = array<i64: 1, 1>,
      corners = array<i64>} : (memref<16x64xf16>) -> !tc.tensor_map
  %ring_a = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !a>
  %ring_b = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !b>
  %landed = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !bars
  %consumed = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !bars
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !d
  "tc.fence"() {kind = "mbarrier_init"} : () -> ()
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    scf.for %stage = %c0 to %c4 step %c1 {
      %k = arith.muli %stage, %c16 : index
      %slot = arith.remui %stage, %c2 : index
      %turn = arith.divui %stage, %c2 : index
      %phase = arith.remui %turn, %c2 : index
      %tile_a = "tc.slot"(%ring_a, %slot) : (!tc.ring<2 : i64, !a>, index) -> !a
      %tile_b = "tc.slot"(%ring_b, %slot) : (!tc.ring<2 : i64, !b>, index) -> !b
      %landed_k = "tc.slot"(%landed, %slot) : (!bars, index) -> !tc.mbarrier
      "tc.mbarrier_expect_tx"(%landed_k) {nbytes = 4608 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map_a, %k, %c0, %tile_a, %landed_k) {row = 0 : i64, nbytes = 4096 : i64,
          operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>}
          : (!tc.tensor_map, index, index, !a, !tc.mbarrier) -> ()
      "tc.tma_load"(%map_b, %k, %c0, %tile_b, %landed_k) {row = 0 : i64, nbytes = 512 : i64,
          operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>}
          : (!tc.tensor_map, index, index, !b, !tc.mbarrier) -> ()
      "tc.mbarrier_wait"(%landed_k, %phase) : (!tc.mbarrier, index) -> ()
    }
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    scf.for %stage = %c0 to %c4 step %c1 {
      %slot = arith.remui %stage, %c2 : index
      %turn = arith.divui %stage, %c2 : index
      %phase = arith.remui %turn, %c2 : index
      %tile_a = "tc.slot"(%ring_a, %slot) : (!tc.ring<2 : i64, !a>, index) -> !a
      %tile_b = "tc.slot"(%ring_b, %slot) : (!tc.ring<2 : i64, !b>, index) -> !b
      %landed_k = "tc.slot"(%landed, %slot) : (!bars, index) -> !tc.mbarrier
      %consumed_k = "tc.slot"(%consumed, %slot) : (!bars, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%landed_k, %phase) : (!tc.mbarrier, index) -> ()
      "tc.fence"() {kind = "tcgen05.after"} : () -> ()
      %accumulate = arith.cmpi ne, %stage, %c0 : index
      "tc.mma"(%d, %tile_a, %tile_b, %accumulate) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
          : (!d, !a, !b, i1) -> ()
      "tc.commit"(%consumed_k) : (!tc.mbarrier) -> ()
    }
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    "tc.mbarrier_wait"(%done, %c0) : (!tc.mbarrier, index) -> ()
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
    %row = arith.muli %warp, %c32 : index
    %sums = "tc.tmem_ld"(%d, %warp, %c0) : (!d, index, index) -> vector<32x16xf32>
    "tc.tmem_wait"() {kind = "ld"} : () -> ()
    "tc.store_rows"(%sums, %out, %row, %c0) {rows = 32 : i64, row_dim = 0 : i64,
        operandSegmentSizes = array<i32: 1, 1, 2>}
        : (vector<32x16xf32>, memref<128x16xf32>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
