// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.tmem_ld_words/shape
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  %v = "tc.tmem_ld_words"(%d, %q, %q) {shape = "16x64b", upper = false, pack = false} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// illegal: tc.tmem_ld_words/shape
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  // expected-error @+1 {{tc.tmem_ld_words: shape must be one of "32x32b", "16x64b", "16x32bx2", "16x128b", "16x256b", got "32x16b"}}
  %v = "tc.tmem_ld_words"(%d, %q, %q) {shape = "32x16b", upper = false, pack = false} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// legal: tc.tmem_ld_words/value
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  %v = "tc.tmem_ld_words"(%d, %q, %q) {shape = "16x256b", upper = false, pack = false} : (!d, index, index) -> vector<32x4xi32>
  return
}

// -----

// illegal: tc.tmem_ld_words/value
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  // expected-error @+1 {{tc.tmem_ld_words: the value must be vector<32 x registers x i32> with 4 registers for each of .num one of 1, 2, 4, 8, 16, 32 repetitions of 16x256b, got vector<32x2xi32>}}
  %v = "tc.tmem_ld_words"(%d, %q, %q) {shape = "16x256b", upper = false, pack = false} : (!d, index, index) -> vector<32x2xi32>
  return
}

// -----

// legal: tc.tmem_ld_words/flags
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  %v = "tc.tmem_ld_words"(%d, %q, %q) {shape = "16x64b", upper = true, pack = false} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// illegal: tc.tmem_ld_words/flags
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  // expected-error @+1 {{tc.tmem_ld_words: upper and pack must be true or false, and upper false for 32x32b, which has all 32 lanes, got true and false}}
  %v = "tc.tmem_ld_words"(%d, %q, %q) {shape = "32x32b", upper = true, pack = false} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// legal: tc.tmem_ld_words/split
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  %v = "tc.tmem_ld_words"(%d, %q, %q) {shape = "16x32bx2", upper = false, pack = false, split = 16 : i64} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// illegal: tc.tmem_ld_words/split
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  // expected-error @+1 {{tc.tmem_ld_words: split must be an integer of at least 0 for shape 16x32bx2 and absent for others, got none for 16x32bx2: it is immHalfSplitoff}}
  %v = "tc.tmem_ld_words"(%d, %q, %q) {shape = "16x32bx2", upper = false, pack = false} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// legal: tc.tmem_ld_words/quarter
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  %k = arith.constant 3 : index
  %v = "tc.tmem_ld_words"(%d, %k, %q) {shape = "16x64b", upper = false, pack = false} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// illegal: tc.tmem_ld_words/quarter
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  %k = arith.constant 4 : index
  // expected-error @+1 {{tc.tmem_ld_words: quarter must be in [0, 4), got 4: a warp reaches lanes 32 * (warp mod 4) to + 31}}
  %v = "tc.tmem_ld_words"(%d, %k, %q) {shape = "16x64b", upper = false, pack = false} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// legal: tc.tmem_ld_words/columns
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  %k = arith.constant 16 : index
  %v = "tc.tmem_ld_words"(%d, %q, %k) {shape = "16x64b", upper = false, pack = false} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// illegal: tc.tmem_ld_words/columns
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index) {
  %k = arith.constant 8 : index
  // expected-error @+1 {{tc.tmem_ld_words: the columns must lie within the tile's [0, 32), got [8, 40)}}
  %v = "tc.tmem_ld_words"(%d, %q, %k) {shape = "16x64b", upper = false, pack = true} : (!d, index, index) -> vector<32x8xi32>
  return
}

// -----

// legal: tc.tmem_st_words/shape
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  "tc.tmem_st_words"(%v, %d, %q, %q) {shape = "16x64b", upper = false, pack = false} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st_words/shape
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  // expected-error @+1 {{tc.tmem_st_words: shape must be one of "32x32b", "16x64b", "16x32bx2", "16x128b", "16x256b", got "32x16b"}}
  "tc.tmem_st_words"(%v, %d, %q, %q) {shape = "32x16b", upper = false, pack = false} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// legal: tc.tmem_st_words/value
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x4xi32>) {
  "tc.tmem_st_words"(%v, %d, %q, %q) {shape = "16x256b", upper = false, pack = false} : (vector<32x4xi32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st_words/value
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x2xi32>) {
  // expected-error @+1 {{tc.tmem_st_words: the value must be vector<32 x registers x i32> with 4 registers for each of .num one of 1, 2, 4, 8, 16, 32 repetitions of 16x256b, got vector<32x2xi32>}}
  "tc.tmem_st_words"(%v, %d, %q, %q) {shape = "16x256b", upper = false, pack = false} : (vector<32x2xi32>, !d, index, index) -> ()
  return
}

// -----

// legal: tc.tmem_st_words/flags
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  "tc.tmem_st_words"(%v, %d, %q, %q) {shape = "16x64b", upper = true, pack = false} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st_words/flags
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  // expected-error @+1 {{tc.tmem_st_words: upper and pack must be true or false, and upper false for 32x32b, which has all 32 lanes, got true and false}}
  "tc.tmem_st_words"(%v, %d, %q, %q) {shape = "32x32b", upper = true, pack = false} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// legal: tc.tmem_st_words/split
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  "tc.tmem_st_words"(%v, %d, %q, %q) {shape = "16x32bx2", upper = false, pack = false, split = 16 : i64} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st_words/split
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  // expected-error @+1 {{tc.tmem_st_words: split must be an integer of at least 0 for shape 16x32bx2 and absent for others, got none for 16x32bx2: it is immHalfSplitoff}}
  "tc.tmem_st_words"(%v, %d, %q, %q) {shape = "16x32bx2", upper = false, pack = false} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// legal: tc.tmem_st_words/quarter
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  %k = arith.constant 3 : index
  "tc.tmem_st_words"(%v, %d, %k, %q) {shape = "16x64b", upper = false, pack = false} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st_words/quarter
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  %k = arith.constant 4 : index
  // expected-error @+1 {{tc.tmem_st_words: quarter must be in [0, 4), got 4: a warp reaches lanes 32 * (warp mod 4) to + 31}}
  "tc.tmem_st_words"(%v, %d, %k, %q) {shape = "16x64b", upper = false, pack = false} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// legal: tc.tmem_st_words/columns
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  %k = arith.constant 16 : index
  "tc.tmem_st_words"(%v, %d, %q, %k) {shape = "16x64b", upper = false, pack = false} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st_words/columns
!d = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%d: !d, %q: index, %v: vector<32x8xi32>) {
  %k = arith.constant 8 : index
  // expected-error @+1 {{tc.tmem_st_words: the columns must lie within the tile's [0, 32), got [8, 40)}}
  "tc.tmem_st_words"(%v, %d, %q, %k) {shape = "16x64b", upper = false, pack = true} : (vector<32x8xi32>, !d, index, index) -> ()
  return
}

// -----

// legal: tc.cp_rows/shape
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp_rows"(%s, %t) {shape = "128x128b", multicast = "", row = 0 : i64, byte = 0 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp_rows/shape
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp_rows: shape must be one of "128x256b", "128x128b", "4x256b", "64x128b", "32x128b", got "16x128b"}}
  "tc.cp_rows"(%s, %t) {shape = "16x128b", multicast = "", row = 0 : i64, byte = 0 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp_rows/multicast
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp_rows"(%s, %t) {shape = "64x128b", multicast = "warpx2::01_23", row = 0 : i64, byte = 0 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp_rows/multicast
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp_rows: multicast must be "warpx2::02_13" or "warpx2::01_23" for shape 64x128b, got "warpx4"}}
  "tc.cp_rows"(%s, %t) {shape = "64x128b", multicast = "warpx4", row = 0 : i64, byte = 0 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp_rows/format
!s = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp_rows"(%s, %t) {shape = "128x128b", multicast = "", row = 0 : i64, byte = 0 : i64, column = 0 : i64, format = "b4x16_p64"} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp_rows/format
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp_rows: format must be one of b4x16_p64, b6x16_p32 of a source of i8, got "b4x16_p64" of f16}}
  "tc.cp_rows"(%s, %t) {shape = "128x128b", multicast = "", row = 0 : i64, byte = 0 : i64, column = 0 : i64, format = "b4x16_p64"} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp_rows/major
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp_rows"(%s, %t) {shape = "128x128b", multicast = "", row = 0 : i64, byte = 0 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp_rows/major
!s = !tc.smem<array<i64: 128, 64>, f16, "MN", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp_rows: source must be K-major, got "MN": tcgen05.cp reads rows and cannot transpose}}
  "tc.cp_rows"(%s, %t) {shape = "128x128b", multicast = "", row = 0 : i64, byte = 0 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp_rows/rows
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp_rows"(%s, %t) {shape = "32x128b", multicast = "warpx4", row = 96 : i64, byte = 0 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp_rows/rows
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp_rows: rows [100, 132) must lie in the source's 128 and begin at a multiple of 8: a descriptor starts at a whole swizzle atom}}
  "tc.cp_rows"(%s, %t) {shape = "32x128b", multicast = "warpx4", row = 100 : i64, byte = 0 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp_rows/bytes
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp_rows"(%s, %t) {shape = "128x128b", multicast = "", row = 0 : i64, byte = 112 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp_rows/bytes
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp_rows: bytes [112, 144) of K must lie in one row of the source's 128 bytes (without a swizzle, in K's 128) and begin at a multiple of 16}}
  "tc.cp_rows"(%s, %t) {shape = "128x256b", multicast = "", row = 0 : i64, byte = 112 : i64, column = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp_rows/columns
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp_rows"(%s, %t) {shape = "128x128b", multicast = "", row = 0 : i64, byte = 0 : i64, column = 12 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp_rows/columns
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp_rows: target must have columns [14, 18), got 16 columns}}
  "tc.cp_rows"(%s, %t) {shape = "128x128b", multicast = "", row = 0 : i64, byte = 0 : i64, column = 14 : i64} : (!s, !t) -> ()
  return
}
