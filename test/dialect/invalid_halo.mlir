// RUN: %tc-opt %s --split-input-file --verify-diagnostics

// legal: tc.shift/slice
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%t: !t) {
  "tc.shift"(%t) {slice = 3 : i64, quarter = 0 : i64} : (!t) -> ()
  return
}

// -----

// illegal: tc.shift/slice
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%t: !t) {
  // expected-error @+1 {{tc.shift: slice must be in [0, 4), got 4: the tile has 32 columns, and one shift moves 8 of them}}
  "tc.shift"(%t) {slice = 4 : i64, quarter = 0 : i64} : (!t) -> ()
  return
}

// -----

// legal: tc.shift/quarter
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%t: !t) {
  "tc.shift"(%t) {slice = 0 : i64, quarter = 3 : i64} : (!t) -> ()
  return
}

// -----

// illegal: tc.shift/quarter
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%t: !t) {
  // expected-error @+1 {{tc.shift: quarter must be in [0, 4), got 4: the address names a lane that is a multiple of 32}}
  "tc.shift"(%t) {slice = 0 : i64, quarter = 4 : i64} : (!t) -> ()
  return
}

// -----

// legal: tc.refresh/major
!s = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.refresh"(%s, %t) {slice = 0 : i64, row = 8 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.refresh/major
!s = !tc.smem<array<i64: 16, 64>, f16, "MN", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.refresh: source must be K-major, got "MN": tcgen05.cp reads rows and cannot transpose}}
  "tc.refresh"(%s, %t) {slice = 0 : i64, row = 8 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.refresh/element
!s = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.refresh"(%s, %t) {slice = 0 : i64, row = 8 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.refresh/element
!s = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, bf16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.refresh: source and target must have the same element type, got f16 and bf16: tcgen05.cp copies bits}}
  "tc.refresh"(%s, %t) {slice = 0 : i64, row = 8 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.refresh/slice
!s = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.refresh"(%s, %t) {slice = 3 : i64, row = 8 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.refresh/slice
!s = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.refresh: slice must be in [0, 4) of both source and target, got 4: one copy takes 32 bytes of K to 8 columns}}
  "tc.refresh"(%s, %t) {slice = 4 : i64, row = 8 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.refresh/row
!s = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.refresh"(%s, %t) {slice = 0 : i64, row = 8 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.refresh/row
!s = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.refresh: row must be a multiple of 8 (4 with swizzle 128B) with four rows in the tile's [0, 16), got 2: a descriptor starts where the swizzle's pattern does, or amid it (cp_row_phase of the assumptions)}}
  "tc.refresh"(%s, %t) {slice = 0 : i64, row = 2 : i64} : (!s, !t) -> ()
  return
}
