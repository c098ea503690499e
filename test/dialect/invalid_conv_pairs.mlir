// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Rules of pairs whose A is loaded in im2col mode, each next to a legal twin.

// legal: tc.kernel/cluster-bytes
func.func @f(%x: memref<1x16x16x64xf16>, %w: memref<1x1x64x32xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %pixels = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 16, 16, 1>, strides = array<i64: 128, 2048, 32768>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: 0, 0, 0, 0>, swizzle = "128B"} : (memref<1x16x16x64xf16>) -> !tc.tensor_map
  %filters = "tc.make_tensor_map"(%w) {mode = "tiled", dims = array<i64: 32, 64, 1, 1>, strides = array<i64: 64, 4096, 4096>, box = array<i64: 16, 64, 1, 1>, element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<1x1x64x32xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "MN", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 36864 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%pixels, %i, %i, %i, %i, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 1>} : (!tc.tensor_map, index, index, index, index, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
    "tc.tma_load"(%filters, %i, %i, %i, %i, %b, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>} : (!tc.tensor_map, index, index, index, index, !tc.smem<array<i64: 16, 64>, f16, "MN", "32B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "MN", "32B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/cluster-bytes
func.func @f(%x: memref<1x16x16x64xf16>, %w: memref<1x1x64x32xf16>, %out: memref<256x32xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a", tc.async} {
  %i = arith.constant 0 : index
  %no = arith.constant false
  %pixels = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 16, 16, 1>, strides = array<i64: 128, 2048, 32768>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: 0, 0, 0, 0>, swizzle = "128B"} : (memref<1x16x16x64xf16>) -> !tc.tensor_map
  %filters = "tc.make_tensor_map"(%w) {mode = "tiled", dims = array<i64: 32, 64, 1, 1>, strides = array<i64: 64, 4096, 4096>, box = array<i64: 16, 64, 1, 1>, element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<1x1x64x32xf16>) -> !tc.tensor_map
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 64>, f16, "MN", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 32>, f32>
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    // expected-error @+1 {{tc.kernel: the leader's barrier must expect the bytes of both CTAs' loads, 36864, got 18432: each CTA of the pair loads its half and counts it there}}
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 18432 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%pixels, %i, %i, %i, %i, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 1>} : (!tc.tensor_map, index, index, index, index, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
    "tc.tma_load"(%filters, %i, %i, %i, %i, %b, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>} : (!tc.tensor_map, index, index, index, index, !tc.smem<array<i64: 16, 64>, f16, "MN", "32B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "MN", "32B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%warp: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.tma_load/pair-signal
func.func @f(%x: memref<1x16x16x64xf16>, %tile: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %full: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 16, 16, 1>, strides = array<i64: 128, 2048, 32768>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: 0, 0, 0, 0>, swizzle = "128B"} : (memref<1x16x16x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %i, %i, %tile, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 1>} : (!tc.tensor_map, index, index, index, index, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.tma_load/pair-signal
func.func @f(%x: memref<1x16x16x64xf16>, %tile: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %full: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 16, 16, 1>, strides = array<i64: 128, 2048, 32768>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: 0, 0, 0, 0>, swizzle = "128B"} : (memref<1x16x16x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: cta_group = 2 needs a signal: it counts the bytes on the mbarrier at that place in the leader's shared memory}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %i, %i, %tile) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 0>} : (!tc.tensor_map, index, index, index, index, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">) -> ()
  return
}
