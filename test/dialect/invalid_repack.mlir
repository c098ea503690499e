// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// legal: tc.repack/low
func.func @f(%x: tensor<1x9x9x3xf16>) {
  %0 = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>, low = array<i64: 0, 0, 1, 0>}
      : (tensor<1x9x9x3xf16>) -> tensor<1x9x11x4xf16>
  return
}

// -----

// illegal: tc.repack/low
func.func @f(%x: tensor<1x9x9x3xf16>) {
  // expected-error @+1 {{tc.repack: low must be array<i64> of 4 numbers of at least 0, one for each dimension of the result, or left out, got array<i64: 0, 1>}}
  %0 = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>, low = array<i64: 0, 1>}
      : (tensor<1x9x9x3xf16>) -> tensor<1x9x11x4xf16>
  return
}

// -----

// illegal: tc.repack/low
func.func @f(%x: tensor<1x9x9x3xf16>) {
  // expected-error @+1 {{tc.repack: low must be array<i64> of 4 numbers of at least 0, one for each dimension of the result, or left out, got array<i64: 0, 0, -1, 0>}}
  %0 = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>, low = array<i64: 0, 0, -1, 0>}
      : (tensor<1x9x9x3xf16>) -> tensor<1x9x11x4xf16>
  return
}

// -----

// The zeros in front take room, too.
// illegal: tc.repack/extents
func.func @f(%x: tensor<1x9x9x3xf16>) {
  // expected-error @+1 {{tc.repack: each extent of the result must be at least that of its source dimension and the zeros in front, [1, 9, 12, 3], got [1, 9, 11, 4]; take a slice in an op of its own}}
  %0 = "tc.repack"(%x) {permutation = array<i64: 0, 1, 2, 3>, low = array<i64: 0, 0, 3, 0>}
      : (tensor<1x9x9x3xf16>) -> tensor<1x9x11x4xf16>
  return
}

// -----

// Packed rows begin with an element: zeros of half a byte would move all others.
// illegal: tc.repack/element
func.func @f(%w: tensor<3x8xf4E2M1FN>) {
  // expected-error @+1 {{tc.repack: source and result must have the same element type, of whole bytes, or packed in rows of whole bytes that stay innermost, got tensor<3x8xf4E2M1FN> and tensor<3x16xf4E2M1FN>; a repacking moves bytes}}
  %0 = "tc.repack"(%w) {permutation = array<i64: 0, 1>, low = array<i64: 0, 1>} : (tensor<3x8xf4E2M1FN>) -> tensor<3x16xf4E2M1FN>
  return
}

// -----

// legal: tc.repack/permutation
func.func @f(%w: tensor<3x3x8x4xf16>) {
  %0 = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>}
      : (tensor<3x3x8x4xf16>) -> tensor<4x3x3x8xf16>
  return
}

// -----

// illegal: tc.repack/permutation
func.func @f(%w: tensor<3x3x8x4xf16>) {
  // expected-error @+1 {{tc.repack: permutation must name each of the 4 dimensions of source once, got [3, 0, 0, 2]}}
  %0 = "tc.repack"(%w) {permutation = array<i64: 3, 0, 0, 2>}
      : (tensor<3x3x8x4xf16>) -> tensor<4x3x3x8xf16>
  return
}

// -----

// legal: tc.repack/element
func.func @f(%w: tensor<8xf8E4M3FN>) {
  %0 = "tc.repack"(%w) {permutation = array<i64: 0>} : (tensor<8xf8E4M3FN>) -> tensor<16xf8E4M3FN>
  return
}

// -----

// legal: tc.repack/element
func.func @f(%w: tensor<3x8xf6E2M3FN>) {
  %0 = "tc.repack"(%w) {permutation = array<i64: 0, 1>} : (tensor<3x8xf6E2M3FN>) -> tensor<3x16xf6E2M3FN>
  return
}

// -----

// illegal: tc.repack/element
func.func @f(%w: tensor<4x8xf4E2M1FN>) {
  // expected-error @+1 {{tc.repack: source and result must have the same element type, of whole bytes, or packed in rows of whole bytes that stay innermost, got tensor<4x8xf4E2M1FN> and tensor<8x4xf4E2M1FN>; a repacking moves bytes}}
  %0 = "tc.repack"(%w) {permutation = array<i64: 1, 0>} : (tensor<4x8xf4E2M1FN>) -> tensor<8x4xf4E2M1FN>
  return
}

// -----

// illegal: tc.repack/element
func.func @f(%w: tensor<8xf4E2M1FN>) {
  // expected-error @+1 {{tc.repack: source and result must have the same element type, of whole bytes, or packed in rows of whole bytes that stay innermost, got tensor<8xf4E2M1FN> and tensor<9xf4E2M1FN>; a repacking moves bytes}}
  %0 = "tc.repack"(%w) {permutation = array<i64: 0>} : (tensor<8xf4E2M1FN>) -> tensor<9xf4E2M1FN>
  return
}

// -----

// legal: tc.repack/extents
func.func @f(%x: tensor<2x3xf16>) {
  %0 = "tc.repack"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf16>) -> tensor<3x8xf16>
  return
}

// -----

// illegal: tc.repack/extents
func.func @f(%x: tensor<2x3xf16>) {
  // expected-error @+1 {{tc.repack: each extent of the result must be at least that of its source dimension and the zeros in front, [3, 2], got [2, 8]; take a slice in an op of its own}}
  %0 = "tc.repack"(%x) {permutation = array<i64: 1, 0>} : (tensor<2x3xf16>) -> tensor<2x8xf16>
  return
}
