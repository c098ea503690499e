// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.cp/rows
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp"(%s, %t) {slice = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp/rows
!s = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp: source must have at least 128 rows, got 64: tcgen05.cp.128x256b copies row i to lane i of all 128 lanes}}
  "tc.cp"(%s, %t) {slice = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp/major
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "32B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp"(%s, %t) {slice = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp/major
!s = !tc.smem<array<i64: 128, 64>, f16, "MN", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp: source must be K-major, got "MN": tcgen05.cp reads rows of 8 x 16-byte units and cannot transpose; load the tile K-major or use it from shared memory}}
  "tc.cp"(%s, %t) {slice = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp/element
!s = !tc.smem<array<i64: 128, 64>, bf16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, bf16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp"(%s, %t) {slice = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp/element
!s = !tc.smem<array<i64: 128, 64>, bf16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp: source and target must have the same element type, got bf16 and f16: tcgen05.cp copies bits}}
  "tc.cp"(%s, %t) {slice = 0 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp/slice
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp"(%s, %t) {slice = 3 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp/slice
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp: slice must be in [0, 4), got 4: source has K = 64, and one copy takes 32 bytes of it}}
  "tc.cp"(%s, %t) {slice = 4 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.cp/target-columns
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  "tc.cp"(%s, %t) {slice = 1 : i64} : (!s, !t) -> ()
  return
}

// -----

// illegal: tc.cp/target-columns
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%s: !s, %t: !t) {
  // expected-error @+1 {{tc.cp: target must have columns [16, 24) for this slice, got 16 columns}}
  "tc.cp"(%s, %t) {slice = 2 : i64} : (!s, !t) -> ()
  return
}

// -----

// legal: tc.tmem_ld/element
!t = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%t: !t) {
  %q = arith.constant 0 : index
  %c = arith.constant 0 : index
  %v = "tc.tmem_ld"(%t, %q, %c) : (!t, index, index) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.tmem_ld/element
!t = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%t: !t) {
  %q = arith.constant 0 : index
  %c = arith.constant 0 : index
  // expected-error @+1 {{tc.tmem_ld: source must be f32 or i32, got f16: the op loads accumulators, one 32-bit column each}}
  %v = "tc.tmem_ld"(%t, %q, %c) : (!t, index, index) -> vector<32x16xf32>
  return
}

// -----

// legal: tc.tmem_ld/shape
!t = !tc.tmem<array<i64: 128, 128>, f32>
func.func @f(%t: !t) {
  %q = arith.constant 0 : index
  %c = arith.constant 0 : index
  %v = "tc.tmem_ld"(%t, %q, %c) : (!t, index, index) -> vector<32x128xf32>
  return
}

// -----

// illegal: tc.tmem_ld/shape
!t = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%t: !t) {
  %q = arith.constant 0 : index
  %c = arith.constant 0 : index
  // expected-error @+1 {{tc.tmem_ld: the result must be vector<32xNxf32> with N one of 1, 2, 4, 8, 16, 32, 64, 128, got vector<32x24xf32>: .32x32b loads 32 lanes and a power of two of columns}}
  %v = "tc.tmem_ld"(%t, %q, %c) : (!t, index, index) -> vector<32x24xf32>
  return
}

// -----

// legal: tc.tmem_ld/quarter
!t = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%t: !t) {
  %q = arith.constant 3 : index
  %c = arith.constant 0 : index
  %v = "tc.tmem_ld"(%t, %q, %c) : (!t, index, index) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.tmem_ld/quarter
!t = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%t: !t) {
  %q = arith.constant 4 : index
  %c = arith.constant 0 : index
  // expected-error @+1 {{tc.tmem_ld: quarter must be in [0, 4), got 4: a warp reaches lanes 32 * (warp mod 4) to + 31}}
  %v = "tc.tmem_ld"(%t, %q, %c) : (!t, index, index) -> vector<32x16xf32>
  return
}

// -----

// legal: tc.tmem_ld/columns
!t = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%t: !t) {
  %q = arith.constant 0 : index
  %c = arith.constant 48 : index
  %v = "tc.tmem_ld"(%t, %q, %c) : (!t, index, index) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.tmem_ld/columns
!t = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%t: !t) {
  %q = arith.constant 0 : index
  %c = arith.constant 49 : index
  // expected-error @+1 {{tc.tmem_ld: the columns must lie within the tile's [0, 64), got [49, 65)}}
  %v = "tc.tmem_ld"(%t, %q, %c) : (!t, index, index) -> vector<32x16xf32>
  return
}

// -----

// legal: tc.tmem_wait/kind
func.func @f() {
  "tc.tmem_wait"() {kind = "st"} : () -> ()
  return
}

// -----

// illegal: tc.tmem_wait/kind
func.func @f() {
  // expected-error @+1 {{tc.tmem_wait: kind must be "ld" or "st", got "mma"; completion of mma and cp is waited for with tc.commit and tc.mbarrier_wait}}
  "tc.tmem_wait"() {kind = "mma"} : () -> ()
  return
}

// -----

// legal: tc.store_rows/value
func.func @f(%v: vector<32x1xf16>, %out: memref<1x56x56x64xf16>, %i: index) {
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x1xf16>, memref<1x56x56x64xf16>, index, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_rows/value
func.func @f(%v: vector<16x16xf16>, %out: memref<1x56x56x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_rows: value must be vector<32 x columns x element> (one row per thread of a warp), got vector<16x16xf16>}}
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<16x16xf16>, memref<1x56x56x64xf16>, index, index, index, index) -> ()
  return
}

// -----

// legal: tc.store_rows/tensor
func.func @f(%v: vector<32x16xf16>, %out: memref<3136x64xf16>, %i: index) {
  "tc.store_rows"(%v, %out, %i, %i) {rows = 30 : i64, row_dim = 0 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>}
      : (vector<32x16xf16>, memref<3136x64xf16>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_rows/tensor
func.func @f(%v: vector<32x16xf16>, %out: memref<?x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_rows: tensor must be a static, contiguous memref of rank >= 2, got memref<?x64xf16>: rows are clipped against its extents}}
  "tc.store_rows"(%v, %out, %i, %i) {rows = 30 : i64, row_dim = 0 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>}
      : (vector<32x16xf16>, memref<?x64xf16>, index, index) -> ()
  return
}

// -----

// legal: tc.store_rows/element
func.func @f(%v: vector<32x16xf32>, %out: memref<1x56x56x64xf32>, %i: index) {
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf32>, memref<1x56x56x64xf32>, index, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_rows/element
func.func @f(%v: vector<32x16xf32>, %out: memref<1x56x56x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_rows: value and tensor must have the same element type, got f32 and f16; convert with arith.truncf first}}
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf32>, memref<1x56x56x64xf16>, index, index, index, index) -> ()
  return
}

// -----

// legal: tc.store_rows/indices
func.func @f(%v: vector<32x16xf16>, %out: memref<1x56x56x64xf16>, %i: index) {
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf16>, memref<1x56x56x64xf16>, index, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_rows/indices
func.func @f(%v: vector<32x16xf16>, %out: memref<1x56x56x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_rows: expected one index per dimension of the tensor (4), got 3}}
  "tc.store_rows"(%v, %out, %i, %i, %i) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 3>}
      : (vector<32x16xf16>, memref<1x56x56x64xf16>, index, index, index) -> ()
  return
}

// -----

// legal: tc.store_rows/rows
func.func @f(%v: vector<32x16xf16>, %out: memref<1x56x56x64xf16>, %i: index) {
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 32 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf16>, memref<1x56x56x64xf16>, index, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_rows/rows
func.func @f(%v: vector<32x16xf16>, %out: memref<1x56x56x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_rows: rows must be in [1, 32], got 33: a warp holds 32 rows}}
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 33 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf16>, memref<1x56x56x64xf16>, index, index, index, index) -> ()
  return
}

// -----

// legal: tc.store_rows/row-dim
func.func @f(%v: vector<32x16xf16>, %out: memref<1x56x56x64xf16>, %i: index) {
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf16>, memref<1x56x56x64xf16>, index, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_rows/row-dim
func.func @f(%v: vector<32x16xf16>, %out: memref<1x56x56x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_rows: row_dim must be a dimension of the tensor in [0, 4) other than 3, which takes the columns, got 3}}
  "tc.store_rows"(%v, %out, %i, %i, %i, %i) {rows = 30 : i64, row_dim = 3 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf16>, memref<1x56x56x64xf16>, index, index, index, index) -> ()
  return
}

// -----

// The rows go along the last dimension.
// legal: tc.store_rows/column-dim
func.func @f(%v: vector<32x16xf16>, %out: memref<8x64xf16>, %i: index) {
  "tc.store_rows"(%v, %out, %i, %i) {rows = 32 : i64, row_dim = 1 : i64, column_dim = 0 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>}
      : (vector<32x16xf16>, memref<8x64xf16>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_rows/column-dim
func.func @f(%v: vector<32x16xf16>, %out: memref<8x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_rows: column_dim must be a dimension of the tensor in [0, 2), or left out for the last, got 2 : i64}}
  "tc.store_rows"(%v, %out, %i, %i) {rows = 32 : i64, row_dim = 1 : i64, column_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>}
      : (vector<32x16xf16>, memref<8x64xf16>, index, index) -> ()
  return
}

// -----

// legal: tc.tmem_st/value
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%v: vector<32x16xf32>, %d: !d, %i: index) {
  "tc.tmem_st"(%v, %d, %i, %i) : (vector<32x16xf32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st/value
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%v: vector<32x12xf32>, %d: !d, %i: index) {
  // expected-error @+1 {{tc.tmem_st: value must be vector<32xNxf32> like the target, with N one of 1, 2, 4, 8, 16, 32, 64, 128, got vector<32x12xf32>: .32x32b stores 32 lanes and a power of two of columns}}
  "tc.tmem_st"(%v, %d, %i, %i) : (vector<32x12xf32>, !d, index, index) -> ()
  return
}

// -----

// legal: tc.tmem_st/quarter
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%v: vector<32x16xf32>, %d: !d, %i: index) {
  %c = arith.constant 3 : index
  "tc.tmem_st"(%v, %d, %c, %i) : (vector<32x16xf32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st/quarter
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%v: vector<32x16xf32>, %d: !d, %i: index) {
  %c = arith.constant 4 : index
  // expected-error @+1 {{tc.tmem_st: quarter must be in [0, 4), got 4: a warp reaches lanes 32 * (warp mod 4) to + 31}}
  "tc.tmem_st"(%v, %d, %c, %i) : (vector<32x16xf32>, !d, index, index) -> ()
  return
}

// -----

// legal: tc.tmem_st/columns
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%v: vector<32x16xf32>, %d: !d, %i: index) {
  %c = arith.constant 48 : index
  "tc.tmem_st"(%v, %d, %i, %c) : (vector<32x16xf32>, !d, index, index) -> ()
  return
}

// -----

// illegal: tc.tmem_st/columns
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%v: vector<32x16xf32>, %d: !d, %i: index) {
  %c = arith.constant 56 : index
  // expected-error @+1 {{tc.tmem_st: the columns must lie within the tile's [0, 64), got [56, 72)}}
  "tc.tmem_st"(%v, %d, %i, %c) : (vector<32x16xf32>, !d, index, index) -> ()
  return
}
