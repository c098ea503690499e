// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// Both CTAs load half of a tile for both; a slot is free once both have read it.
// legal: tc.kernel/cta-mask
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/cta-mask
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      // expected-error @+1 {{tc.kernel: cta_mask must be of CTAs of the cluster, tc.cluster = array<i64: 1, 2, 1>: in [1, 3], or an array of 2, got 7 : i64 on tc.tma_load; legal on tc.tma_load, tc.commit and tc.mbarrier_arrive}}
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 7 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/cta-mask
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      // expected-error @+1 {{tc.kernel: cta_mask must be of CTAs of the cluster, tc.cluster = array<i64: 1, 2, 1>: in [1, 3], or an array of 2, got array<i64: 3, 3, 3> on tc.commit; legal on tc.tma_load, tc.commit and tc.mbarrier_arrive}}
      "tc.commit"(%f) {cta_mask = array<i64: 3, 3, 3>} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/cta-mask
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      // expected-error @+1 {{tc.kernel: cta_mask must be of CTAs of the cluster, tc.cluster = array<i64: 1, 2, 1>: in [1, 3], or an array of 2, got 3 : i64 on tc.mbarrier_expect_tx; legal on tc.tma_load, tc.commit and tc.mbarrier_arrive}}
      "tc.mbarrier_expect_tx"(%r) {cta_mask = 3 : i64, nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-commit
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 2048 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      // expected-error @+1 {{tc.kernel: all 2 CTAs of the cluster wait on this barrier, and the commit arrives on those of CTA 1 only: set cta_mask for each CTA (.multicast::cluster), or the other wait never ends}}
      "tc.commit"(%f) {cta_mask = 2 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// legal: tc.kernel/commit-arrivals
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/commit-arrivals
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  // expected-error @+1 {{tc.kernel: the barrier must take 2 arrivals, one of each CTA whose tc.commit reaches it, got 1: CTA 0 goes on after the first of them}}
  %empty = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/commit-arrivals
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  // expected-error @+1 {{tc.kernel: the barrier must take 2 arrivals, one of each CTA whose tc.commit reaches it, got 3: no further one comes, and no wait ends}}
  %empty = "tc.mbarrier_init"() {arrivals = 3 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// A mask for each CTA.
// legal: tc.kernel/multicast-reuse
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = array<i64: 3, 3>, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = array<i64: 3, 3>} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// Each waits for its own CTA only.
// illegal: tc.kernel/multicast-reuse
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      // expected-error @+1 {{tc.kernel: this load overwrites a slot of CTA 0, which may still read it: CTA 1 waits for no tc.commit of it; "empty" must come from every CTA of the load's mask, cta_mask = array<i64: 3, 3> on the commit that frees the slot}}
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// A slot for each load.
// legal: tc.kernel/multicast-reuse
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 2 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-bytes
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      // expected-error @+1 {{tc.kernel: CTA 0's barrier must expect the bytes of all CTAs' loads, 4096, got 2048: what another CTA multicasts counts on every barrier it reaches}}
      "tc.mbarrier_expect_tx"(%r) {nbytes = 2048 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// CTA 1 keeps its half to itself.
// illegal: tc.kernel/cluster-bytes
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      // expected-error @+1 {{tc.kernel: CTA 0's barrier must expect the bytes of all CTAs' loads, 2048, got 4096: what another CTA multicasts counts on every barrier it reaches}}
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = array<i64: 3, 2>, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-barrier
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  // expected-error @+1 {{tc.kernel: a kernel of multicasts needs tc.cluster_barrier behind tc.mbarrier_init: another CTA signals mbarriers here that may not be initialised}}
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-barrier
func.func @f(%x: memref<128x64xf16>, %out: memref<128x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 2, 1>, tc.cluster = array<i64: 1, 2, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %one = arith.constant 1 : index
  %steps = arith.constant 4 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", swizzle = "32B", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 64>, element_strides = array<i64: 1, 1>, corners = array<i64>} : (memref<128x64xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %other = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %empty = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
  %rank = "tc.cta_rank"() : () -> index
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %t = %i to %steps step %one {
      %slot = arith.remui %t, %steps : index
      %a = "tc.slot"(%ring, %slot) : (!tc.ring<2 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %half = "tc.smem_part"(%a, %rank) : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, index) -> !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
      %r = "tc.slot"(%full, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      %f = "tc.slot"(%empty, %slot) : (!tc.ring<2 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
      "tc.mbarrier_wait"(%f, %one) : (!tc.mbarrier, index) -> ()
      "tc.mbarrier_expect_tx"(%r) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
      "tc.tma_load"(%map, %t, %i, %half, %r) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 64, 16>, f16, "K", "32B">, !tc.mbarrier) -> ()
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
      "tc.commit"(%f) {cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
    }
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  // expected-error @+1 {{tc.kernel: a kernel of multicasts needs tc.cluster_barrier behind its last op that reaches others, before it ends: another CTA may still use this CTA's memory}}
  return
}

// -----

// legal: tc.tma_load/cta-mask
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %a, %bar) {cta_mask = 3 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.tma_load/cta-mask
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %a, %bar) {cta_mask = array<i64: 5, 10, 5, 10>, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.tma_load/cta-mask
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: cta_mask must be in [1, 255], a bit for each CTA of the cluster by its rank, or array<i64> of such a mask for each CTA, got 0 : i64: without one the box goes to the CTA's own shared memory}}
  "tc.tma_load"(%map, %i, %i, %a, %bar) {cta_mask = 0 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.tma_load/cta-mask
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: cta_mask must be in [1, 255], a bit for each CTA of the cluster by its rank, or array<i64> of such a mask for each CTA, got array<i64: 3, 256>: without one the box goes to the CTA's own shared memory}}
  "tc.tma_load"(%map, %i, %i, %a, %bar) {cta_mask = array<i64: 3, 256>, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.tma_load/cta-mask
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: cta_mask must be in [1, 255], a bit for each CTA of the cluster by its rank, or array<i64> of such a mask for each CTA, got "all": without one the box goes to the CTA's own shared memory}}
  "tc.tma_load"(%map, %i, %i, %a, %bar) {cta_mask = "all", row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.commit/cta-mask
func.func @f(%bar: !tc.mbarrier, %i: index) {
  "tc.commit"(%bar) {cta_mask = array<i64: 3, 12>} : (!tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.tma_load/cta-group
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %a, %bar) {cta_group = 1 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.tma_load/cta-group
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: cta_group must be 1 or 2, got 4 : i64: the bytes count on the CTA's own barrier, or on that of the leader of its pair; leave it out for one CTA}}
  "tc.tma_load"(%map, %i, %i, %a, %bar) {cta_group = 4 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.mbarrier_arrive/cta-group
func.func @f(%bar: !tc.mbarrier, %i: index) {
  "tc.mbarrier_arrive"(%bar) {cta_group = 2 : i64} : (!tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.mbarrier_arrive/cta-group
func.func @f(%bar: !tc.mbarrier, %i: index) {
  // expected-error @+1 {{tc.mbarrier_arrive: cta_group must be 1 or 2, got 3 : i64: an arrival is on the CTA's own barrier, or on that of the leader of its pair; leave it out for one CTA}}
  "tc.mbarrier_arrive"(%bar) {cta_group = 3 : i64} : (!tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.mbarrier_wait/cta-group
func.func @f(%bar: !tc.mbarrier, %i: index) {
  "tc.mbarrier_wait"(%bar, %i) {cta_group = 2 : i64} : (!tc.mbarrier, index) -> ()
  return
}

// -----

// illegal: tc.mbarrier_wait/cta-group
func.func @f(%bar: !tc.mbarrier, %i: index) {
  // expected-error @+1 {{tc.mbarrier_wait: cta_group must be 1 or 2, got 3 : i64: an arrival is on the CTA's own barrier, or on that of the leader of its pair; leave it out for one CTA}}
  "tc.mbarrier_wait"(%bar, %i) {cta_group = 3 : i64} : (!tc.mbarrier, index) -> ()
  return
}

// -----

// legal: tc.smem_part/type
func.func @f(%tile: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %i: index) {
  %part = "tc.smem_part"(%tile, %i) : (!tc.smem<array<i64: 128, 64>, f16, "K", "128B">, index) -> !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
  return
}

// -----

// illegal: tc.smem_part/type
func.func @f(%tile: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %i: index) {
  // expected-error @+1 {{tc.smem_part: a part must have its tile's K extent, element type, major and swizzle, got !tc.smem<array<i64: 64, 32>, f16, "K", "128B"> of !tc.smem<array<i64: 128, 64>, f16, "K", "128B">}}
  %part = "tc.smem_part"(%tile, %i) : (!tc.smem<array<i64: 128, 64>, f16, "K", "128B">, index) -> !tc.smem<array<i64: 64, 32>, f16, "K", "128B">
  return
}

// -----

// legal: tc.smem_part/extent
func.func @f(%tile: !tc.smem<array<i64: 128, 64>, f16, "MN", "128B">, %i: index) {
  %part = "tc.smem_part"(%tile, %i) : (!tc.smem<array<i64: 128, 64>, f16, "MN", "128B">, index) -> !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
  return
}

// -----

// illegal: tc.smem_part/extent
func.func @f(%tile: !tc.smem<array<i64: 128, 64>, f16, "MN", "128B">, %i: index) {
  // expected-error @+1 {{tc.smem_part: the extent of a part along M or N must divide the tile's, 128, and be a multiple of 64 (elements of a swizzle span), got 32}}
  %part = "tc.smem_part"(%tile, %i) : (!tc.smem<array<i64: 128, 64>, f16, "MN", "128B">, index) -> !tc.smem<array<i64: 32, 64>, f16, "MN", "128B">
  return
}

// -----

// illegal: tc.smem_part/extent
func.func @f(%tile: !tc.smem<array<i64: 24, 64>, f16, "K", "128B">, %i: index) {
  // expected-error @+1 {{tc.smem_part: the extent of a part along M or N must divide the tile's, 24, and be a multiple of 8 (rows of a swizzle pattern), got 16}}
  %part = "tc.smem_part"(%tile, %i) : (!tc.smem<array<i64: 24, 64>, f16, "K", "128B">, index) -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  return
}

// -----

// legal: tc.smem_part/contiguous
func.func @f(%tile: !tc.smem<array<i64: 128, 32>, f16, "K", "64B">, %i: index) {
  %part = "tc.smem_part"(%tile, %i) : (!tc.smem<array<i64: 128, 32>, f16, "K", "64B">, index) -> !tc.smem<array<i64: 32, 32>, f16, "K", "64B">
  return
}

// -----

// illegal: tc.smem_part/contiguous
func.func @f(%tile: !tc.smem<array<i64: 128, 64>, f16, "K", "64B">, %i: index) {
  // expected-error @+1 {{tc.smem_part: a K-major tile that has parts must be one swizzle span wide, 64 bytes, got 128: each column of spans has all of the tile's rows, so a part of several would lie in several places}}
  %part = "tc.smem_part"(%tile, %i) : (!tc.smem<array<i64: 128, 64>, f16, "K", "64B">, index) -> !tc.smem<array<i64: 64, 64>, f16, "K", "64B">
  return
}

// -----

// legal: tc.smem_part/number
func.func @f(%tile: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %i: index) {
  %n = arith.constant 1 : index
  %part = "tc.smem_part"(%tile, %n) : (!tc.smem<array<i64: 128, 64>, f16, "K", "128B">, index) -> !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
  return
}

// -----

// illegal: tc.smem_part/number
func.func @f(%tile: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %i: index) {
  %n = arith.constant 2 : index
  // expected-error @+1 {{tc.smem_part: number must be in [0, 2), got 2}}
  %part = "tc.smem_part"(%tile, %n) : (!tc.smem<array<i64: 128, 64>, f16, "K", "128B">, index) -> !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
  return
}
