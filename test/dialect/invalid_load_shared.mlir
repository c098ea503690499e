// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.load_shared/value
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  %v = "tc.load_shared"(%tile, %i, %i) : (!tile, index, index) -> vector<32x16xf16>
  return
}

// -----

// illegal: tc.load_shared/value
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  // expected-error @+1 {{tc.load_shared: value must be vector<32 x columns x f16> (one row per thread of a warp, elements of the tile), got vector<32x16xf32>}}
  %v = "tc.load_shared"(%tile, %i, %i) : (!tile, index, index) -> vector<32x16xf32>
  return
}

// -----

// legal: tc.load_shared/width
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  %v = "tc.load_shared"(%tile, %i, %i) : (!tile, index, index) -> vector<32x8xf16>
  return
}

// -----

// illegal: tc.load_shared/width
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  // expected-error @+1 {{tc.load_shared: a row must be a multiple of 16 bytes that divides 128 (a row of the tile) or is a multiple of it, got 48: a swizzle moves 16 bytes as a whole}}
  %v = "tc.load_shared"(%tile, %i, %i) : (!tile, index, index) -> vector<32x24xf16>
  return
}

// -----

// legal: tc.load_shared/major
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  %v = "tc.load_shared"(%tile, %i, %i) : (!tile, index, index) -> vector<32x16xf16>
  return
}

// -----

// illegal: tc.load_shared/major
!tile = !tc.smem<array<i64: 64, 32>, f16, "MN", "128B">
func.func @f(%tile: !tile, %i: index) {
  // expected-error @+1 {{tc.load_shared: the tile must be K-major, got "MN": a thread has a row, and accesses it as one}}
  %v = "tc.load_shared"(%tile, %i, %i) : (!tile, index, index) -> vector<32x16xf16>
  return
}

// -----

// legal: tc.load_shared/rows
!tile = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  %c = arith.constant 32 : index
  %v = "tc.load_shared"(%tile, %c, %i) : (!tile, index, index) -> vector<32x16xf16>
  return
}

// -----

// illegal: tc.load_shared/rows
!tile = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  %c = arith.constant 40 : index
  // expected-error @+1 {{tc.load_shared: the 32 rows must lie in the tile's 64, got [40, 72)}}
  %v = "tc.load_shared"(%tile, %c, %i) : (!tile, index, index) -> vector<32x16xf16>
  return
}

// -----

// legal: tc.load_shared/columns
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  %c = arith.constant 48 : index
  %v = "tc.load_shared"(%tile, %i, %c) : (!tile, index, index) -> vector<32x16xf16>
  return
}

// -----

// illegal: tc.load_shared/columns
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%tile: !tile, %i: index) {
  %c = arith.constant 8 : index
  // expected-error @+1 {{tc.load_shared: the columns must lie in the tile's 64 and begin at a multiple of 16, got [8, 24)}}
  %v = "tc.load_shared"(%tile, %i, %c) : (!tile, index, index) -> vector<32x16xf16>
  return
}
