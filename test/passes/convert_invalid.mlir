// Match failures of convert-tc-to-nvvm, each at its op.
// RUN: %tc-opt %s --split-input-file --convert-tc-to-nvvm --verify-diagnostics

// expected-error @+1 {{expected a func.func with the attribute tc.kernel, got none}}
module {
  func.func @no_kernel() { return }
}

// -----

// expected-error @+1 {{expected attribute 'tc.smem_bytes' on the kernel, got none; run the tile, plan-memory and assign-roles passes first}}
func.func @unplanned() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>} { return }

// -----

// expected-error @+1 {{expected a one-dimensional CTA of whole warps, got [16, 2, 1]}}
func.func @block() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 16, 2, 1>, tc.smem_bytes = 0 : i64} { return }

// -----

func.func @no_offset() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 0 : i64} {
  // expected-error @+1 {{expected attribute 'offset' on 'tc.smem_tile', got none; run plan-memory first}}
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  return
}

// -----

func.func @outside_role() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 8 : i64} {
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 0 : i64} : () -> !tc.mbarrier
  // expected-error @+1 {{expected 'tc.commit' inside tc.role, got it outside, where all threads of the CTA would execute it; run assign-roles first}}
  "tc.commit"(%done) : (!tc.mbarrier) -> ()
  return
}

// -----

func.func @unknown_op() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 0 : i64} {
  // expected-error @+1 {{expected an op that convert-tc-to-nvvm knows, got 'gpu.barrier'}}
  gpu.barrier
  return
}

// -----

func.func @too_wide_index() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 0 : i64} {
  // expected-error @+1 {{expected an index that fits 32 bits, got 2147483648}}
  %c = arith.constant 2147483648 : index
  return
}

// -----

func.func @no_wait(%out: memref<32x16xf32>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 8 : i64} {
  %c0 = arith.constant 0 : index
  %base = "tc.tmem_alloc"() {columns = 32 : i64, address_slot = 0 : i64, warp = 0 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 16>, f32>
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%quarter: index):
    // expected-error @+1 {{expected tc.tmem_wait before the first use of this tc.tmem_ld: its registers are not ready before}}
    %v = "tc.tmem_ld"(%d, %quarter, %c0) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
    "tc.store_rows"(%v, %out, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf32>, memref<32x16xf32>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// A wait that may not be executed makes nothing ready.
func.func @wait_elsewhere(%out: memref<32x16xf32>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 8 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %true = arith.constant true
  %base = "tc.tmem_alloc"() {columns = 32 : i64, address_slot = 0 : i64, warp = 0 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 16>, f32>
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%quarter: index):
    scf.for %i = %c0 to %c1 step %c1 {
      // expected-error @+1 {{expected tc.tmem_wait before the first use of this tc.tmem_ld}}
      %v = "tc.tmem_ld"(%d, %quarter, %c0) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      scf.if %true {
        "tc.tmem_wait"() {kind = "ld"} : () -> ()
      }
      "tc.store_rows"(%v, %out, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf32>, memref<32x16xf32>, index, index) -> ()
    }
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

func.func @no_barrier() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 8 : i64} {
  %c0 = arith.constant 0 : index
  %base = "tc.tmem_alloc"() {columns = 32 : i64, address_slot = 0 : i64, warp = 0 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 16>, f32>
  "tc.role"() ({
  ^bb0(%quarter: index):
    // expected-error @+1 {{expected tc.cta_barrier between tc.tmem_alloc and the first use of its base: the address arrives through shared memory}}
    %v = "tc.tmem_ld"(%d, %quarter, %c0) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

func.func @unsignalled(%w: memref<32x64xf16>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 8 : i64} {
  %c0 = arith.constant 0 : index
  %m = "tc.make_tensor_map"(%w) {mode = "tiled", dims = array<i64: 64, 32>, strides = array<i64: 128>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<32x64xf16>) -> !tc.tensor_map
  %b = "tc.smem_tile"() {offset = 0 : i64} : () -> !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
  "tc.role"() ({
  ^bb0(%me: index):
    // expected-error @+1 {{expected an mbarrier to signal, got none; run place-barriers first}}
    "tc.tma_load"(%m, %c0, %c0, %b) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  return
}

// -----

func.func @gap() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 8 : i64} {
  // expected-error @+1 {{expected adjacent warps in ascending order, got [0, 2]}}
  "tc.role"() ({
  ^bb0(%me: index):
  }) {kind = "epilogue", warps = array<i64: 0, 2>, threads = "warp"} : () -> ()
  return
}
