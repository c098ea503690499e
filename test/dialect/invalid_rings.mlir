// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.kernel/ring-reuse
func.func @f(%x: memref<128x64xf16>, %b: memref<128x64xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %a, %r) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
    }
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%r, %i) : (!tc.mbarrier, index) -> ()
      "tc.mma"(%d, %a, %other, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%f) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// A slot for each load.
// legal: tc.kernel/ring-reuse
func.func @f(%x: memref<128x64xf16>, %b: memref<128x64xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<4 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<4 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<4 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<4 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<4 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %a, %r) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
    }
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<4 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<4 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<4 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%r, %i) : (!tc.mbarrier, index) -> ()
      "tc.mma"(%d, %a, %other, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%f) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// The producer waits for nothing.
// illegal: tc.kernel/ring-reuse
func.func @f(%x: memref<128x64xf16>, %b: memref<128x64xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      // expected-error @+1 {{tc.kernel: 2 slots for 4 loads: this one overwrites a slot that another role may still read; wait before it on a barrier on which that role arrives (tc.commit, tc.mbarrier_arrive) when the slot is empty: "full" alone says when data are there}}
      "tc.tma_load"(%map, %t, %i, %a, %r) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
    }
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%r, %i) : (!tc.mbarrier, index) -> ()
      "tc.mma"(%d, %a, %other, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%f) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// It waits for its own loads.
// illegal: tc.kernel/ring-reuse
func.func @f(%x: memref<128x64xf16>, %b: memref<128x64xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%r, %i) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      // expected-error @+1 {{tc.kernel: 2 slots for 4 loads: this one overwrites a slot that another role may still read; wait before it on a barrier on which that role arrives (tc.commit, tc.mbarrier_arrive) when the slot is empty: "full" alone says when data are there}}
      "tc.tma_load"(%map, %t, %i, %a, %r) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
    }
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%r, %i) : (!tc.mbarrier, index) -> ()
      "tc.mma"(%d, %a, %other, %no) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
      "tc.commit"(%f) : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// Threads read a slot, TMA fills it again.
// legal: tc.kernel/ring-release
!tile = !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
func.func @f(%x: memref<128x64xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 224, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %steps = arith.constant 4 : index
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %tile = "tc.smem_tile"() : () -> !tile
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %empty = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.mbarrier
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %phase = arith.remui %t, %two : index
      %other = arith.subi %one, %phase : index
      "tc.mbarrier_wait"(%empty, %other) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%full) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %tile, %full) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tile, !tc.mbarrier) -> ()
    }
  }) {kind = "epilogue_load", warps = array<i64: 6>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %phase = arith.remui %t, %two : index
      "tc.mbarrier_wait"(%full, %phase) : (!tc.mbarrier, index) -> ()
      %v = "tc.load_shared"(%tile, %i, %i) : (!tile, index, index) -> vector<32x16xf16>
      "tc.fence"() {kind = "proxy.async"} : () -> ()
      "tc.mbarrier_arrive"(%empty) : (!tc.mbarrier) -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// No fence between the two.
// illegal: tc.kernel/ring-release
!tile = !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
func.func @f(%x: memref<128x64xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 224, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %steps = arith.constant 4 : index
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %tile = "tc.smem_tile"() : () -> !tile
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %empty = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.mbarrier
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %phase = arith.remui %t, %two : index
      %other = arith.subi %one, %phase : index
      "tc.mbarrier_wait"(%empty, %other) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%full) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %tile, %full) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tile, !tc.mbarrier) -> ()
    }
  }) {kind = "epilogue_load", warps = array<i64: 6>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %phase = arith.remui %t, %two : index
      "tc.mbarrier_wait"(%full, %phase) : (!tc.mbarrier, index) -> ()
      %v = "tc.load_shared"(%tile, %i, %i) : (!tile, index, index) -> vector<32x16xf16>
      // expected-error @+1 {{tc.kernel: the arrival that lets TMA fill a slot again needs tc.fence "proxy.async" between it and the last tc.load_shared of the slot, got none: threads read it through the generic proxy, TMA writes through the async proxy}}
      "tc.mbarrier_arrive"(%empty) : (!tc.mbarrier) -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
