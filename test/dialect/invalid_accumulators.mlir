// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.kernel/accumulator-reuse
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %tiles = arith.constant 3 : index
  %no = arith.constant false
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %ring = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %free = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mma"(%d, %a, %b, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%dn) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%dn, %i) : (!tc.mbarrier, index) -> ()
      %v = "tc.tmem_ld"(%d, %w, %i) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      "tc.tmem_wait"() {kind = "ld"} : () -> ()
      "tc.fence"() {kind = "tcgen05.before"} : () -> ()
      "tc.mbarrier_arrive"(%f) : (!tc.mbarrier) -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// An accumulator for each tile.
// legal: tc.kernel/accumulator-reuse
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %tiles = arith.constant 2 : index
  %no = arith.constant false
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %ring = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %free = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mma"(%d, %a, %b, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%dn) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%dn, %i) : (!tc.mbarrier, index) -> ()
      %v = "tc.tmem_ld"(%d, %w, %i) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      "tc.tmem_wait"() {kind = "ld"} : () -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// The mma thread does not wait.
// illegal: tc.kernel/accumulator-reuse
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %tiles = arith.constant 3 : index
  %no = arith.constant false
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %ring = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %free = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      // expected-error @+1 {{tc.kernel: 2 accumulators for 3 tiles: the mma overwrites one that the epilogue may still read; wait before it on a barrier on which the epilogue arrives behind its last tc.tmem_ld}}
      "tc.mma"(%d, %a, %b, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%dn) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%dn, %i) : (!tc.mbarrier, index) -> ()
      %v = "tc.tmem_ld"(%d, %w, %i) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      "tc.tmem_wait"() {kind = "ld"} : () -> ()
      "tc.fence"() {kind = "tcgen05.before"} : () -> ()
      "tc.mbarrier_arrive"(%f) : (!tc.mbarrier) -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// The epilogue arrives before it reads.
// illegal: tc.kernel/accumulator-reuse
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %tiles = arith.constant 3 : index
  %no = arith.constant false
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %ring = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %free = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      // expected-error @+1 {{tc.kernel: 2 accumulators for 3 tiles: the mma overwrites one that the epilogue may still read; wait before it on a barrier on which the epilogue arrives behind its last tc.tmem_ld}}
      "tc.mma"(%d, %a, %b, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%dn) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%dn, %i) : (!tc.mbarrier, index) -> ()
      "tc.fence"() {kind = "tcgen05.before"} : () -> ()
      "tc.mbarrier_arrive"(%f) : (!tc.mbarrier) -> ()
      %v = "tc.tmem_ld"(%d, %w, %i) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      "tc.tmem_wait"() {kind = "ld"} : () -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.kernel/accumulator-release
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %tiles = arith.constant 3 : index
  %no = arith.constant false
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %ring = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %free = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mma"(%d, %a, %b, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%dn) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%dn, %i) : (!tc.mbarrier, index) -> ()
      %v = "tc.tmem_ld"(%d, %w, %i) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      "tc.tmem_wait"() {kind = "ld"} : () -> ()
      "tc.fence"() {kind = "tcgen05.before"} : () -> ()
      "tc.mbarrier_arrive"(%f) : (!tc.mbarrier) -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/accumulator-release
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %tiles = arith.constant 3 : index
  %no = arith.constant false
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %ring = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %free = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mma"(%d, %a, %b, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%dn) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %tiles step %one {
      %slot = arith.remui %t, %tiles : index
      %d = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>, index) -> !tc.tmem<array<i64: 128, 16>, f32>
      %f = "tc.slot"(%free, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %dn = "tc.slot"(%done, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%dn, %i) : (!tc.mbarrier, index) -> ()
      %v = "tc.tmem_ld"(%d, %w, %i) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      "tc.tmem_wait"() {kind = "ld"} : () -> ()
      // expected-error @+1 {{tc.kernel: the arrival that lets the mma overwrite an accumulator needs tc.fence "tcgen05.before" between it and the last tc.tmem_ld: the loads may still be under way}}
      "tc.mbarrier_arrive"(%f) : (!tc.mbarrier) -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
