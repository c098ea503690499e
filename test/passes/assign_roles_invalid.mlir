// What cannot be split among warps.
// RUN: %tc-opt %s --split-input-file --assign-roles --verify-diagnostics

func.func @wait_of_nobody(%x: memref<8xf32>) attributes {tc.kernel, tc.async, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.commit"(%done) : (!tc.mbarrier) -> ()
  // expected-error @+1 {{expected an op that belongs to one of the roles producer, mma, epilogue, got tc.mbarrier_wait without the attribute tc.for_role}}
  "tc.mbarrier_wait"(%done, %c0) : (!tc.mbarrier, index) -> ()
  "tc.tmem_wait"() {kind = "ld"} : () -> ()
  return
}

// -----

func.func @unknown_role(%x: memref<8xf32>) attributes {tc.kernel, tc.async, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  // expected-error @+1 {{expected tc.for_role to be one of producer, mma, epilogue, got prologue}}
  "tc.commit"(%done) {tc.for_role = "prologue"} : (!tc.mbarrier) -> ()
  return
}

// -----

func.func @barrier_between(%x: memref<8xf32>) attributes {tc.kernel, tc.async, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.commit"(%done) : (!tc.mbarrier) -> ()
  // expected-error @+1 {{expected tc.cta_barrier before or after the ops of the roles, got it between them}}
  "tc.cta_barrier"() : () -> ()
  "tc.tmem_wait"() {kind = "ld"} : () -> ()
  return
}

// -----

func.func @carried(%x: memref<8xf32>) attributes {tc.kernel, tc.async, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %none = arith.constant dense<0.0> : vector<32x16xf32>
  %done = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %n = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %none) -> (vector<32x16xf32>) {
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
    %v = "tc.tmem_ld"(%d, %c0, %c0) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
    // expected-error @+1 {{expected values to stay within a role, got one from epilogue in mma}}
    scf.yield %v : vector<32x16xf32>
  }
  return
}

// -----

func.func @value_between_roles(%x: memref<64x16xf32>) attributes {tc.kernel, tc.async, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  %v = "tc.tmem_ld"(%d, %c0, %c0) {tc.for_role = "mma"} : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
  // expected-error @+1 {{expected values to stay within a role, got one from mma in epilogue}}
  "tc.store_rows"(%v, %x, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf32>, memref<64x16xf32>, index, index) -> ()
  return
}
