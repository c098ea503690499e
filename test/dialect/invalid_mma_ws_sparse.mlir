// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Weight-stationary and sparse; test_rules.py asks for both examples of every rule.

// legal: tc.mma_ws_sparse/accumulate-type
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/accumulate-type
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i8) {
  // expected-error @+1 {{tc.mma_ws_sparse: accumulate must be i1 (it becomes the predicate enable-input-d), got i8}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i8) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/operand-types
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/operand-types
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, i32, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: A and B must be f16 or bf16 or f32 or f8E4M3FN or f8E5M2 or i8, got f16 and i32: tcgen05.mma without block scales reads no other types}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/same-types
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/same-types
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, bf16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: A and B must have the same element type, or both be f8, got f16 and bf16: no kind mixes them; convert one operand first}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/unsigned
!d = !tc.tmem<array<i64: 128, 32>, i32>
!a = !tc.smem<array<i64: 32, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 128, 256>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, unsigned = array<i64: 1, 1>} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/unsigned
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 1, 1> on f16: only kind::i8 has unsigned operands}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, unsigned = array<i64: 1, 1>} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/d-type
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/d-type
!d = !tc.tmem<array<i64: 128, 32>, i32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: D must be f32 for f16, got i32: tc accumulates in 32 bits and rounds in the epilogue}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/m
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/m
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: A must have 32 or 64 or 128 rows, got 16; fill up with zeros}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/n-range
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/n-range
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 256, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: N must be one of 64, 128, got 256: .ws.sp has no other; nearest legal: 128}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/d-columns
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/d-columns
!d = !tc.tmem<array<i64: 128, 128>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: D must have N * M / 128 = 32 columns for M = 32 and N = 128, got 128: with fewer than 128 rows, parts of N lie on the lanes behind each other}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/a-slice
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 3 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/a-slice
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: a_slice must be in [0, 4), got 4: A has K = 64, and one instruction reads 32 bytes of it}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 4 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/b-slice
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 3 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/b-slice
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: b_slice must be in [0, 4), got 4: B has K = 128, and one sparse instruction reads 64 bytes of it}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 4 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/b-span
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "64B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/b-span
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "32B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: a K-major B must not have swizzle "32B": the 64 bytes of a step would be in two columns, and a swizzled descriptor has no distance for them}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/selector
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 3 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/selector
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: selector must be one of 0, 1, 2, 3 for kind f16, got 4}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 4 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/metadata
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 6 : i64, selector = 1 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/metadata
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: metadata must be a tile of i32 with columns [6, 9), from a multiple of 4, got !tc.tmem<array<i64: 128, 8>, i32>}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 6 : i64, selector = 2 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/collector
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, collector = "fill"} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/collector
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: collector must be one of "fill", "use", "lastuse", "discard", got "keep"}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, collector = "keep"} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws_sparse/buffer
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, buffer = "b3"} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws_sparse/buffer
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_ws_sparse: buffer must be one of "b0", "b1", "b2", "b3", got "b4"}}
  "tc.mma_ws_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, buffer = "b4"} : (!d, !a, !b, !e, i1) -> ()
  return
}
