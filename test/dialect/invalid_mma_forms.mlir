// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.mma/collector
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 64>, f16, "K", "64B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false, collector = "lastuse"} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/collector
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 64>, f16, "K", "64B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma: collector must be one of "fill", "use", "lastuse", "discard", got "keep"}}
  "tc.mma"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false, collector = "keep"} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/ashift-collector
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "K", "64B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true, collector = "lastuse"} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/ashift-collector
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "K", "64B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma: collector must not be "use" with ashift: A changes behind the multiplication}}
  "tc.mma"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true, collector = "use"} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/scale-d
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 64>, f16, "K", "64B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false, scale_d = 15 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/scale-d
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f8E4M3FN, "K", "64B">
!b = !tc.smem<array<i64: 64, 64>, f8E4M3FN, "K", "64B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma: scale_d must be in [0, 15] on operands of kind f16 or tf32, got 1 : i64 on kind f8f6f4: the other kinds have no scale-input-d}}
  "tc.mma"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false, scale_d = 1 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/accumulate-type
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/accumulate-type
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i8) {
  // expected-error @+1 {{tc.mma_ws: accumulate must be i1 (it becomes the predicate enable-input-d), got i8}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i8) -> ()
  return
}

// -----

// legal: tc.mma_ws/operand-types
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/operand-types
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, i32, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: A and B must be f16 or bf16 or f32 or f8E4M3FN or f8E5M2 or i8, got f16 and i32: tcgen05.mma without block scales reads no other types}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/same-types
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/same-types
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, bf16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: A and B must have the same element type, or both be f8, got f16 and bf16: no kind mixes them; convert one operand first}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/unsigned
!d = !tc.tmem<array<i64: 128, 32>, i32>
!a = !tc.smem<array<i64: 32, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, unsigned = array<i64: 0, 1>} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/unsigned
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 0, 1> on f16: only kind::i8 has unsigned operands}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, unsigned = array<i64: 0, 1>} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/d-type
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/d-type
!d = !tc.tmem<array<i64: 128, 32>, i32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: D must be f32 for f16, got i32: tc accumulates in 32 bits and rounds in the epilogue}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/m
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/m
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 96, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: A must have 32 or 64 or 128 rows, got 96; fill up with zeros}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/n-range
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 256, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/n-range
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 96, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: N must be one of 64, 128, 256, got 96: .ws has no other; nearest legal: 64 or 128}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/d-columns
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/d-columns
!d = !tc.tmem<array<i64: 128, 128>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: D must have N * M / 128 = 32 columns for M = 32 and N = 128, got 128: with fewer than 128 rows, parts of N lie on the lanes behind each other}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/a-slice
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 3 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/a-slice
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: a_slice must be in [0, 4), got 4: A has K = 64, and one instruction reads 32 bytes of it}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 4 : i64, b_slice = 0 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/b-slice
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 3 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/b-slice
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: b_slice must be in [0, 4), got 4: B has K = 64, and one instruction reads 32 bytes of it}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 4 : i64} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/collector
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, collector = "fill"} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/collector
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: collector must be one of "fill", "use", "lastuse", "discard", got "keep"}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, collector = "keep"} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_ws/buffer
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, buffer = "b3"} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma_ws/buffer
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %c: i1) {
  // expected-error @+1 {{tc.mma_ws: buffer must be one of "b0", "b1", "b2", "b3", got "b4"}}
  "tc.mma_ws"(%d, %a, %b, %c) {a_slice = 0 : i64, b_slice = 0 : i64, buffer = "b4"} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/accumulate-type
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/accumulate-type
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i8) {
  // expected-error @+1 {{tc.mma_sparse: accumulate must be i1 (it becomes the predicate enable-input-d), got i8}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i8) -> ()
  return
}

// -----

// legal: tc.mma_sparse/operand-types
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/operand-types
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, i32, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: A and B must be f16 or bf16 or f32 or f8E4M3FN or f8E5M2 or i8, got f16 and i32: tcgen05.mma without block scales reads no other types}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/same-types
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/same-types
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, bf16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: A and B must have the same element type, or both be f8, got f16 and bf16: no kind mixes them; convert one operand first}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/unsigned
!d = !tc.tmem<array<i64: 128, 64>, i32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 64, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, unsigned = array<i64: 0, 1>} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/unsigned
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 0, 1> on f16: only kind::i8 has unsigned operands}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, unsigned = array<i64: 0, 1>} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/d-type
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/d-type
!d = !tc.tmem<array<i64: 128, 64>, i32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: D must be f32 for f16, got i32: tc accumulates in 32 bits and rounds in the epilogue}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/m
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/m
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: A in shared memory must have 128 rows, got 64: tc issues M = 128, and a CTA of a pair has half of M = 256; pad A to 128 rows}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/n-range
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/n-range
!d = !tc.tmem<array<i64: 128, 264>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 264, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: N must be a multiple of 8 in [8, 256] for M = 128, cta_group::1, got 264: the instruction descriptor holds N/8 and the tensor core takes no other N; nearest legal: 256}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/n-of-d
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/n-of-d
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: D must have as many columns as B has rows (N), both halves with cta_group = 2, got 32 columns and N = 64}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/a-slice
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 3 : i64, b_slice = 3 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/a-slice
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: a_slice must be in [0, 4), got 4: A has K = 64, and one instruction reads 32 bytes of it}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 4 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/b-slice
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 3 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/b-slice
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: b_slice must be in [0, 4), got 4: B has K = 128, and one sparse instruction reads 64 bytes of it}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 4 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/b-span
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "64B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/b-span
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "32B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: a K-major B must not have swizzle "32B": the 64 bytes of a step would be in two columns, and a swizzled descriptor has no distance for them}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/selector
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 3 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/selector
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: selector must be one of 0, 1, 2, 3 for kind f16, got 4}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 4 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/metadata
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 6 : i64, selector = 1 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/metadata
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: metadata must be a tile of i32 with columns [6, 9), from a multiple of 4, got !tc.tmem<array<i64: 128, 8>, i32>}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 6 : i64, selector = 2 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/collector
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, collector = "fill"} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/collector
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: collector must be one of "fill", "use", "lastuse", "discard", got "keep"}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, collector = "keep"} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// legal: tc.mma_sparse/scale-d
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, scale_d = 15 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}

// -----

// illegal: tc.mma_sparse/scale-d
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f16, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %c: i1) {
  // expected-error @+1 {{tc.mma_sparse: scale_d must be in [0, 15] on operands of kind f16 or tf32, got 16 : i64 on kind f16: the other kinds have no scale-input-d}}
  "tc.mma_sparse"(%d, %a, %b, %e, %c) {a_slice = 0 : i64, b_slice = 0 : i64, metadata_column = 0 : i64, selector = 0 : i64, scale_d = 16 : i64} : (!d, !a, !b, !e, i1) -> ()
  return
}
