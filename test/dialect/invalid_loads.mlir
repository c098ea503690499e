// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// legal: tc.load_rows/value
func.func @f(%t: memref<8x16xf32>, %i: index) {
  %v = "tc.load_rows"(%t, %i, %i) {row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<8x16xf32>, index, index) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.load_rows/value
func.func @f(%t: memref<8x16xf32>, %i: index) {
  // expected-error @+1 {{tc.load_rows: value must be vector<32 x columns x element> of the tensor's element (one row per thread of a warp), got vector<32x16xf16> of memref<8x16xf32>}}
  %v = "tc.load_rows"(%t, %i, %i) {row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<8x16xf32>, index, index) -> vector<32x16xf16>
  return
}

// -----

// legal: tc.load_rows/tensor
func.func @f(%t: memref<f32>, %i: index) {
  %v = "tc.load_rows"(%t) {operandSegmentSizes = array<i32: 1, 0>} : (memref<f32>) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.load_rows/tensor
func.func @f(%t: memref<8x16xf32, strided<[32, 1]>>, %i: index) {
  // expected-error @+1 {{tc.load_rows: tensor must be a static, contiguous memref, got memref<8x16xf32, strided<[32, 1]>>: rows are clipped against its extents}}
  %v = "tc.load_rows"(%t, %i, %i) {operandSegmentSizes = array<i32: 1, 2>} : (memref<8x16xf32, strided<[32, 1]>>, index, index) -> vector<32x16xf32>
  return
}

// -----

// legal: tc.load_rows/indices
func.func @f(%t: memref<8xf32>, %i: index) {
  %v = "tc.load_rows"(%t, %i) {operandSegmentSizes = array<i32: 1, 1>} : (memref<8xf32>, index) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.load_rows/indices
func.func @f(%t: memref<8xf32>, %i: index) {
  // expected-error @+1 {{tc.load_rows: expected one index per dimension of the tensor (1), got 2}}
  %v = "tc.load_rows"(%t, %i, %i) {operandSegmentSizes = array<i32: 1, 2>} : (memref<8xf32>, index, index) -> vector<32x16xf32>
  return
}

// -----

// legal: tc.load_rows/dims
func.func @f(%t: memref<8x16xf32>, %i: index) {
  %v = "tc.load_rows"(%t, %i, %i) {row_dim = 1 : i64, column_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<8x16xf32>, index, index) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.load_rows/dims
func.func @f(%t: memref<8x16xf32>, %i: index) {
  // expected-error @+1 {{tc.load_rows: row_dim and column_dim must be two dimensions of the tensor in [0, 2), or left out, got row_dim = 1 : i64, column_dim = 1 : i64}}
  %v = "tc.load_rows"(%t, %i, %i) {row_dim = 1 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<8x16xf32>, index, index) -> vector<32x16xf32>
  return
}

// -----

// legal: tc.load_rows/lanes
func.func @f(%t: memref<8x16xf32>, %i: vector<32xindex>) {
  %v = "tc.load_rows"(%t, %i, %i) {column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<8x16xf32>, vector<32xindex>, vector<32xindex>) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.load_rows/lanes
func.func @f(%t: memref<8x16xf32>, %i: vector<32xindex>) {
  // expected-error @+1 {{tc.load_rows: indices must be of index, or of vector<32xindex> without row_dim, got vector<32xindex>, vector<32xindex> with row_dim = 0 : i64: rows follow each other along row_dim, or each has a place of its own}}
  %v = "tc.load_rows"(%t, %i, %i) {row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<8x16xf32>, vector<32xindex>, vector<32xindex>) -> vector<32x16xf32>
  return
}

// -----

// illegal: tc.load_rows/lanes
func.func @f(%t: memref<8xf32>, %i: vector<16xindex>) {
  // expected-error @+1 {{tc.load_rows: indices must be of index, or of vector<32xindex> without row_dim, got vector<16xindex> with row_dim = none: rows follow each other along row_dim, or each has a place of its own}}
  %v = "tc.load_rows"(%t, %i) {operandSegmentSizes = array<i32: 1, 1>} : (memref<8xf32>, vector<16xindex>) -> vector<32x16xf32>
  return
}
