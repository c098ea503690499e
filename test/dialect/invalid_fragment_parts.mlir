// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// legal: tc.fragment_part/columns
!c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 8>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  %d = "tc.fragment_part"(%c) {first = 56 : i64} : (!c) -> !d
  return
}

// -----

// illegal: tc.fragment_part/columns
!c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  // expected-error @+1 {{tc.fragment_part: the result must be a fragment of C like !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">, of whole atoms of 8 of its columns from a multiple of 8, got !tc.fragment<array<i64: 128, 16>, f32, "C", "mma.m16n8k16.f16"> from 56: a thread has pairs of each atom}}
  %d = "tc.fragment_part"(%c) {first = 56 : i64} : (!c) -> !d
  return
}

// -----

// legal: tc.fetch_fragment/tails
!c = !tc.fragment<array<i64: 128, 32>, bf16, "C", "mma.m16n8k16.f16">
func.func @f(%x: memref<100x50xbf16>, %i: index) {
  %c = "tc.fetch_fragment"(%x, %i, %i) {map = affine_map<(m, n) -> (m, n)>, tails = "outer inner",
      operandSegmentSizes = array<i32: 1, 2>} : (memref<100x50xbf16>, index, index) -> !c
  return
}

// -----

// illegal: tc.fetch_fragment/tails
!c = !tc.fragment<array<i64: 128, 32>, bf16, "C", "mma.m16n8k16.f16">
func.func @f(%x: memref<100x50xbf16>, %i: index) {
  // expected-error @+1 {{tc.fetch_fragment: tails must be one of "", "outer", "inner", "outer inner", got "rows"}}
  %c = "tc.fetch_fragment"(%x, %i, %i) {map = affine_map<(m, n) -> (m, n)>, tails = "rows",
      operandSegmentSizes = array<i32: 1, 2>} : (memref<100x50xbf16>, index, index) -> !c
  return
}

// -----

// legal: tc.fetch_fragment/map
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%x: memref<1x64xf32>, %i: index) {
  %c = "tc.fetch_fragment"(%x, %i, %i, %i) {map = affine_map<(b, m, n) -> (0, n)>, tails = "",
      operandSegmentSizes = array<i32: 1, 3>} : (memref<1x64xf32>, index, index, index) -> !c
  return
}

// -----

// illegal: tc.fetch_fragment/map
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%x: memref<64xf32>, %i: index) {
  // expected-error @+1 {{tc.fetch_fragment: map must go from the 2 dimensions of the result, one for each index, to distinct ones of them, or 0, got (d0, d1, d2) -> (d2)}}
  %c = "tc.fetch_fragment"(%x, %i, %i) {map = affine_map<(b, m, n) -> (n)>, tails = "",
      operandSegmentSizes = array<i32: 1, 2>} : (memref<64xf32>, index, index) -> !c
  return
}

// -----

// legal: tc.fetch_fragment/tensor
!c = !tc.fragment<array<i64: 128, 32>, f16, "C", "mma.m16n8k16.f16">
func.func @f(%x: memref<3x128x64xf16>, %i: index) {
  %c = "tc.fetch_fragment"(%x, %i, %i, %i) {map = affine_map<(b, m, n) -> (b, m, n)>, tails = "",
      operandSegmentSizes = array<i32: 1, 3>} : (memref<3x128x64xf16>, index, index, index) -> !c
  return
}

// -----

// illegal: tc.fetch_fragment/tensor
!c = !tc.fragment<array<i64: 128, 32>, f16, "C", "mma.m16n8k16.f16">
func.func @f(%x: memref<128x64xf32>, %i: index) {
  // expected-error @+1 {{tc.fetch_fragment: tensor must be a static, contiguous memref with a dimension for each result of the map, of extent 1 where that is 0, and the result a fragment of C of its elements, f16, bf16 or f32, got memref<128x64xf32> -> !tc.fragment<array<i64: 128, 32>, f16, "C", "mma.m16n8k16.f16">}}
  %c = "tc.fetch_fragment"(%x, %i, %i) {map = affine_map<(m, n) -> (m, n)>, tails = "",
      operandSegmentSizes = array<i32: 1, 2>} : (memref<128x64xf32>, index, index) -> !c
  return
}

// -----

// legal: tc.element/memref
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f16, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %r: !d, %i: index) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%sum: f32):
    %e = "tc.element"(%r) {map = affine_map<(m, n) -> (m, n)>} : (!d) -> f16
    "tc.yield"(%e) : (f16) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !d
  return
}

// -----

// illegal: tc.element/memref
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f16, "C", "mma.m16n8k16.f16">
!r = !tc.fragment<array<i64: 128, 64>, f16, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %r: !r, %i: index) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%sum: f32):
    // expected-error @+1 {{tc.element: tensor beside a fragment must be a static, contiguous memref with a dimension for each result of the map, of extent 1 where that is 0, or a fragment in the same registers, and the value its element, got !tc.fragment<array<i64: 128, 64>, f16, "C", "mma.m16n8k16.f16"> -> f16}}
    %e = "tc.element"(%r) {map = affine_map<(m, n) -> (m, n)>} : (!r) -> f16
    "tc.yield"(%e) : (f16) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !d
  return
}
