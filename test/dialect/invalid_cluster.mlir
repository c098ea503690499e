// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.kernel/cta-group
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/cta-group
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    // expected-error @+1 {{tc.kernel: cta_group must be the same on all tcgen05 ops of a kernel, 2 as on its first, got 1: an SM works for one CTA or for a pair; legal: 1, or 2 on tc.mma, tc.mma_block_scale, tc.cp, tc.cp_rows, tc.cp_scales, tc.refresh, tc.shift, tc.commit, tc.tmem_alloc, tc.tmem_dealloc, tc.tmem_relinquish}}
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/pair-cluster
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/pair-cluster
// expected-error @+1 {{tc.kernel: cta_group = 2 needs tc.cluster = array<i64: 2, 1, 1>, got none: a pair is two CTAs of a cluster, of ranks that differ in bit 0 only}}
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/leader
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/leader
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    // expected-error @+1 {{tc.kernel: leader must be a unit attribute of tc.mma, tc.mma_block_scale, tc.cp, tc.cp_rows, tc.cp_scales, tc.refresh, tc.shift, tc.commit, tc.mbarrier_wait, tc.mbarrier_expect_tx, tc.launch_request, tc.fence, tc.role in a kernel of pairs, got unit on tc.tma_load: the CTA of odd rank skips the op}}
    "tc.tma_load"(%map, %i, %i, %a, %full) {leader, cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/pair-leader
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/pair-leader
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) {leader} : (!tc.mbarrier, index) -> ()
    // expected-error @+1 {{tc.kernel: tc.mma of cta_group = 2 must be the leader's (attribute leader, of the op or its role): one thread of the pair issues it, and issued by both CTAs it takes effect twice}}
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64, leader} : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/cluster-commit
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-commit
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    // expected-error @+1 {{tc.kernel: both CTAs of the pair wait on this barrier, and the commit arrives on the leader's only: set cta_mask = 3 (.multicast::cluster), or the other wait never ends}}
    "tc.commit"(%done) {cta_group = 2 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/cluster-bytes
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-bytes
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    // expected-error @+1 {{tc.kernel: the leader's barrier must expect the bytes of both CTAs' loads, 32768, got 16384: each CTA of the pair loads its half and counts it there}}
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 16384 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/cluster-barrier
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-barrier
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  // expected-error @+1 {{tc.kernel: a kernel of pairs needs tc.cluster_barrier behind tc.mbarrier_init: the other CTA signals mbarriers here that may not be initialised}}
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-barrier
func.func @f(%x: memref<256x64xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cta_barrier"() : () -> ()
  // expected-error @+1 {{tc.kernel: a kernel of pairs needs tc.cluster_barrier in front of tc.tmem_dealloc: the other CTA may still use this CTA's memory}}
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.commit/cta-mask
func.func @f(%bar: !tc.mbarrier) {
  "tc.commit"(%bar) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.commit/cta-mask
func.func @f(%bar: !tc.mbarrier) {
  // expected-error @+1 {{tc.commit: cta_mask must be in [1, 255], a bit for each CTA of the cluster by its rank, or array<i64> of such a mask for each CTA, got 0 : i64: without one the arrival is on the CTA's own barrier}}
  "tc.commit"(%bar) {cta_group = 2 : i64, cta_mask = 0 : i64} : (!tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.mbarrier_arrive/cta-mask
func.func @f(%bar: !tc.mbarrier) {
  "tc.mbarrier_arrive"(%bar) {once, cta_mask = array<i64: 3, 3>} : (!tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.mbarrier_arrive/cta-mask
func.func @f(%bar: !tc.mbarrier) {
  // expected-error @+1 {{tc.mbarrier_arrive: cta_mask must be in [1, 255], a bit for each CTA of the cluster by its rank, or array<i64> of such a mask for each CTA, got array<i64: 3, 256>: without one the arrival is on the CTA's own barrier}}
  "tc.mbarrier_arrive"(%bar) {once, cta_mask = array<i64: 3, 256>} : (!tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.tma_load/pair-signal
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %a, %bar) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.tma_load/pair-signal
func.func @f(%x: memref<256x64xf16>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %bar: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 256>, strides = array<i64: 128>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<256x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: cta_group = 2 needs a signal: it counts the bytes on the mbarrier at that place in the leader's shared memory}}
  "tc.tma_load"(%map, %i, %i, %a) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">) -> ()
  return
}

// -----

// legal: tc.mma/pair-form
func.func @f(%d: !tc.tmem<array<i64: 128, 32>, f32>, %a: !tc.tmem<array<i64: 128, 64>, f16>, %b: !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, %no: i1) {
  "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = true} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.tmem<array<i64: 128, 64>, f16>, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
  return
}

// -----

// illegal: tc.mma/pair-form
func.func @f(%d: !tc.tmem<array<i64: 128, 32>, f32>, %a: !tc.smem<array<i64: 144, 64>, f16, "K", "NONE">, %b: !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, %no: i1) {
  // expected-error @+1 {{tc.mma: cta_group = 2 takes no a_row, got 8: the schedules that start at a row of A's tile are for one CTA}}
  "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false, a_row = 8 : i64} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 144, 64>, f16, "K", "NONE">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
  return
}

// -----

// illegal: tc.mma/n-range
func.func @f(%d: !tc.tmem<array<i64: 128, 272>, f32>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %b: !tc.smem<array<i64: 136, 64>, f16, "K", "128B">, %no: i1) {
  // expected-error @+1 {{tc.mma: N must be a multiple of 16 in [16, 256] for M = 256, cta_group::2, got 272: the instruction descriptor holds N/8 and the tensor core takes no other N; nearest legal: 256}}
  "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 272>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 136, 64>, f16, "K", "128B">, i1) -> ()
  return
}

// -----

// illegal: tc.mma/n-of-d
func.func @f(%d: !tc.tmem<array<i64: 128, 16>, f32>, %a: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %b: !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, %no: i1) {
  // expected-error @+1 {{tc.mma: D must have as many columns as B has rows (N), both halves with cta_group = 2, got 16 columns and N = 32}}
  "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/scale-columns
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 32, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 16>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {cta_group = 2 : i64, kind = "mxf4nvf4",
      a_type = "e2m1", b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 0 : i64,
      b_slice = 0 : i64, sfa_column = 0 : i64, sfb_column = 2 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/scale-columns
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 32, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 16>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: sfb must have columns [3, 5) for the scales of 64 rows, got 4 columns: 32 rows share a column}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {cta_group = 2 : i64, kind = "mxf4nvf4",
      a_type = "e2m1", b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 0 : i64,
      b_slice = 0 : i64, sfa_column = 0 : i64, sfb_column = 3 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}
