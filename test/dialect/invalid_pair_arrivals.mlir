// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Arrivals and waits across a pair of CTAs, each rule next to a legal twin.

// legal: tc.kernel/pair-arrival
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
  %free = "tc.mbarrier_init"() {arrivals = 256 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%free, %i) {cta_group = 2 : i64} : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_arrive"(%free) {cta_group = 2 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/pair-arrival
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
  %free = "tc.mbarrier_init"() {arrivals = 256 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%free, %i) {cta_group = 2 : i64} : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
    // expected-error @+1 {{tc.kernel: only the leader waits on this barrier, and the arrivals of the other are on its own: set cta_group = 2 (the leader's barrier), or its mma do not wait for them}}
    "tc.mbarrier_arrive"(%free) : (!tc.mbarrier) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/pair-arrival
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
  %free = "tc.mbarrier_init"() {arrivals = 256 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%free, %i) {cta_group = 2 : i64} : (!tc.mbarrier, index) -> ()
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
    // expected-error @+1 {{tc.kernel: both CTAs of the pair wait on this barrier, and the arrivals of the other are on the leader's: leave out cta_group, or its own wait never ends}}
    "tc.mbarrier_arrive"(%free) {cta_group = 2 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/pair-wait
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
  %free = "tc.mbarrier_init"() {arrivals = 256 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%free, %i) {cta_group = 2 : i64} : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_arrive"(%free) {cta_group = 2 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/pair-wait
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
  %free = "tc.mbarrier_init"() {arrivals = 256 : i64} : () -> !tc.mbarrier
  %base = "tc.tmem_alloc"() {columns = 32 : i64, cta_group = 2 : i64} : () -> !tc.tmem_base
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%full) {leader, nbytes = 32768 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %a, %full) {cta_group = 2 : i64, row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    // expected-error @+1 {{tc.kernel: a wait for arrivals of both CTAs must have cta_group = 2, .acquire.cluster, got .acquire.cta: by default it acquires from the threads of its own CTA only}}
    "tc.mbarrier_wait"(%free, %i) : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
    "tc.mma"(%d, %a, %b, %no) {cta_group = 2 : i64, a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 32>, f32>, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, i1) -> ()
    "tc.commit"(%done) {cta_group = 2 : i64, cta_mask = 3 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "mma", leader, warps = array<i64: 5>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%done, %i) : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_arrive"(%free) {cta_group = 2 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cluster_barrier"() : () -> ()
  "tc.tmem_dealloc"(%base) {columns = 32 : i64, cta_group = 2 : i64} : (!tc.tmem_base) -> ()
  return
}
