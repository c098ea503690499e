// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.mma/accumulate-type
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/accumulate-type
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i32) {
  // expected-error @+1 {{tc.mma: accumulate must be i1 (it becomes the predicate enable-input-d), got i32}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i32) -> ()
  return
}

// -----

// legal: tc.mma/ashift-type
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/ashift-type
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: ashift must be true or false, got 1 : i64}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = 1 : i64}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/operand-types
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, bf16>
!b = !tc.smem<array<i64: 64, 64>, bf16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/operand-types
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, i32>
!b = !tc.smem<array<i64: 64, 64>, f32, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: A and B must be f16 or bf16 or f32 or f8E4M3FN or f8E5M2 or i8, got i32 and f32: tcgen05.mma without block scales reads no other types}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/same-types
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/same-types
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, bf16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: A and B must have the same element type, or both be f8, got bf16 and f16: no kind mixes them; convert one operand first}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/d-type
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/d-type
!d = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !d, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: D must be f32 for f16, got f16: tc accumulates in 32 bits and rounds in the epilogue}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !d, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/m
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/m
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: A in shared memory must have 128 rows, got 64: tc issues M = 128, and a CTA of a pair has half of M = 256; pad A to 128 rows}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/n-range
!d = !tc.tmem<array<i64: 128, 256>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 256, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/n-range
!d = !tc.tmem<array<i64: 128, 20>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 20, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: N must be a multiple of 8 in [8, 256] for M = 128, cta_group::1, got 20: the instruction descriptor holds N/8 and the tensor core takes no other N; nearest legal: 16 or 24}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/n-of-d
!d = !tc.tmem<array<i64: 128, 24>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/n-of-d
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: D must have as many columns as B has rows (N), both halves with cta_group = 2, got 32 columns and N = 24}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/a-slice
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 3 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/a-slice
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: a_slice must be in [0, 4), got 4: A has K = 64, and one instruction reads 32 bytes of it}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 4 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/b-slice
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 3 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/b-slice
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: b_slice must be in [0, 4), got -1: B has K = 64, and one instruction reads 32 bytes of it}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = -1 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/ashift-operand
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/ashift-operand
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: ashift needs A in tensor memory, got !tc.smem<array<i64: 128, 64>, f16, "K", "128B">: .ashift moves lanes of tensor memory; copy A there with tc.cp}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/a-row-operand
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 134, 64>, f16, "K", "NONE">
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false, a_row = 3 : i64}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/a-row-operand
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: a_row needs A in shared memory, K-major, swizzle "NONE", got !tc.smem<array<i64: 136, 64>, f16, "K", "128B">: only there are all rows of a column 16 bytes apart, so a descriptor may start at any of them}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false, a_row = 3 : i64}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/a-row-range
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 134, 64>, f16, "K", "NONE">
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 3 : i64, b_slice = 0 : i64, ashift = false, a_row = 6 : i64}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/a-row-range
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.smem<array<i64: 134, 64>, f16, "K", "NONE">
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: the 128 rows from a_row must lie in the tile: a_row must be in [0, 7) for slice 3 of 134 rows per column and 1072 in all, got 7}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 3 : i64, b_slice = 0 : i64, ashift = false, a_row = 7 : i64}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// legal: tc.mma/unsigned
!d = !tc.tmem<array<i64: 128, 64>, i32>
!a = !tc.tmem<array<i64: 128, 64>, i8>
!b = !tc.smem<array<i64: 64, 64>, i8, "K", "64B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false,
      unsigned = array<i64: 1, 0>} : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.mma/unsigned
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 1, 0> on f16: only kind::i8 has unsigned operands}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false,
      unsigned = array<i64: 1, 0>} : (!d, !a, !b, i1) -> ()
  return
}
