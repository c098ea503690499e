// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// legal: tc.quantise_fragment/types
!c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 64>, f8E5M2, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  %q, %s = "tc.quantise_fragment"(%c) : (!c) -> (!q, !s)
  return
}

// -----

// illegal: tc.quantise_fragment/types
!c = !tc.fragment<array<i64: 128, 64>, f16, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  // expected-error @+1 {{tc.quantise_fragment: values must be a fragment of C of f32, codes and scales fragments of its shape and atom of f8E4M3FN or f8E5M2 and f8E8M0FNU, got !tc.fragment<array<i64: 128, 64>, f16, "C", "mma.m16n8k16.f16"> to !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16"> with !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">: four threads have pairs of a row of each atom, e2m1 is converted by threads of whole rows on sm_100a}}
  %q, %s = "tc.quantise_fragment"(%c) : (!c) -> (!q, !s)
  return
}

// -----

// illegal: tc.quantise_fragment/types
!c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  // expected-error @+1 {{tc.quantise_fragment: values must be a fragment of C of f32, codes and scales fragments of its shape and atom of f8E4M3FN or f8E5M2 and f8E8M0FNU, got !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16"> to !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16"> with !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">: four threads have pairs of a row of each atom, e2m1 is converted by threads of whole rows on sm_100a}}
  %q, %s = "tc.quantise_fragment"(%c) : (!c) -> (!q, !s)
  return
}

// -----

// illegal: tc.quantise_fragment/types
!c = !tc.fragment<array<i64: 128, 128>, f32, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  // expected-error @+1 {{tc.quantise_fragment: values must be a fragment of C of f32, codes and scales fragments of its shape and atom of f8E4M3FN or f8E5M2 and f8E8M0FNU, got !tc.fragment<array<i64: 128, 128>, f32, "C", "mma.m16n8k16.f16"> to !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16"> with !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">: four threads have pairs of a row of each atom, e2m1 is converted by threads of whole rows on sm_100a}}
  %q, %s = "tc.quantise_fragment"(%c) : (!c) -> (!q, !s)
  return
}

// -----

// illegal: tc.quantise_fragment/types
!c = !tc.fragment<array<i64: 128, 64>, f32, "A", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "A", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "A", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  // expected-error @+1 {{tc.quantise_fragment: values must be a fragment of C of f32, codes and scales fragments of its shape and atom of f8E4M3FN or f8E5M2 and f8E8M0FNU, got !tc.fragment<array<i64: 128, 64>, f32, "A", "mma.m16n8k16.f16"> to !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "A", "mma.m16n8k16.f16"> with !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "A", "mma.m16n8k16.f16">: four threads have pairs of a row of each atom, e2m1 is converted by threads of whole rows on sm_100a}}
  %q, %s = "tc.quantise_fragment"(%c) : (!c) -> (!q, !s)
  return
}

// -----

// legal: tc.quantise_fragment/columns
!c = !tc.fragment<array<i64: 128, 192>, f32, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 192>, f8E4M3FN, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 192>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  %q, %s = "tc.quantise_fragment"(%c) : (!c) -> (!q, !s)
  return
}

// -----

// illegal: tc.quantise_fragment/columns
!c = !tc.fragment<array<i64: 128, 96>, f32, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 96>, f8E4M3FN, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 96>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  // expected-error @+1 {{tc.quantise_fragment: values must have a multiple of 64 columns, got 96: a register has the scales of 64 columns of two rows}}
  %q, %s = "tc.quantise_fragment"(%c) : (!c) -> (!q, !s)
  return
}

// -----

// legal: tc.quantise_fragment/scale-rounding
!c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  %q, %s = "tc.quantise_fragment"(%c) {scale_rounding = "floor"} : (!c) -> (!q, !s)
  return
}

// -----

// illegal: tc.quantise_fragment/scale-rounding
!c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c) {
  // expected-error @+1 {{tc.quantise_fragment: scale_rounding must be "floor" or "rceil", or left out for floor, got "even"}}
  %q, %s = "tc.quantise_fragment"(%c) {scale_rounding = "even"} : (!c) -> (!q, !s)
  return
}

// -----

// legal: tc.store_fragment_scales/fragment
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<200x7xf8E8M0FNU>, %i: index) {
  "tc.store_fragment_scales"(%s, %out, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<200x7xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment_scales/fragment
!s = !tc.fragment<array<i64: 128, 32>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<200x7xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_fragment_scales: expected a fragment of C of f8E8M0FNU with a multiple of 64 columns, got !tc.fragment<array<i64: 128, 32>, f8E8M0FNU, "C", "mma.m16n8k16.f16">}}
  "tc.store_fragment_scales"(%s, %out, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<200x7xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment_scales/fragment
!s = !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<200x7xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_fragment_scales: expected a fragment of C of f8E8M0FNU with a multiple of 64 columns, got !tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">}}
  "tc.store_fragment_scales"(%s, %out, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<200x7xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// legal: tc.store_fragment_scales/indices
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<3x200x7xf8E8M0FNU>, %i: index) {
  "tc.store_fragment_scales"(%s, %out, %i, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 3>} : (!s, memref<3x200x7xf8E8M0FNU>, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment_scales/indices
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<200x7xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_fragment_scales: expected the row and the column of the tile's first element, or a batch before them, got 1 indices}}
  "tc.store_fragment_scales"(%s, %out, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 1>} : (!s, memref<200x7xf8E8M0FNU>, index) -> ()
  return
}

// -----

// legal: tc.store_fragment_scales/tensor
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<2x2x512xf8E8M0FNU>, %i: index) {
  "tc.store_fragment_scales"(%s, %out, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<2x2x512xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// legal: tc.store_fragment_scales/tensor
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<3x2x2x512xf8E8M0FNU>, %i: index) {
  "tc.store_fragment_scales"(%s, %out, %i, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 3>} : (!s, memref<3x2x2x512xf8E8M0FNU>, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment_scales/tensor
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<200x7xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_fragment_scales: tensor must be a static, contiguous memref of f8E8M0FNU [.., 200, 8], as rows and scales say, or of their blocks [.., rows / 128, scales / 4, 512], with an index for each dimension before, got memref<200x7xf8E8M0FNU>}}
  "tc.store_fragment_scales"(%s, %out, %i, %i) {rows = 200 : i64, scales = 8 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<200x7xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment_scales/tensor
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<1x2x512xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_fragment_scales: tensor must be a static, contiguous memref of f8E8M0FNU [.., 200, 7], as rows and scales say, or of their blocks [.., rows / 128, scales / 4, 512], with an index for each dimension before, got memref<1x2x512xf8E8M0FNU>}}
  "tc.store_fragment_scales"(%s, %out, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<1x2x512xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment_scales/tensor
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<2x2x512xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{tc.store_fragment_scales: tensor must be a static, contiguous memref of f8E8M0FNU [.., 200, 7], as rows and scales say, or of their blocks [.., rows / 128, scales / 4, 512], with an index for each dimension before, got memref<2x2x512xf8E4M3FN>}}
  "tc.store_fragment_scales"(%s, %out, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<2x2x512xf8E4M3FN>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment_scales/tensor
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<2x2x512xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_fragment_scales: tensor must be a static, contiguous memref of f8E8M0FNU [.., 200, 7], as rows and scales say, or of their blocks [.., rows / 128, scales / 4, 512], with an index for each dimension before, got memref<2x2x512xf8E8M0FNU>}}
  "tc.store_fragment_scales"(%s, %out, %i, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 3>} : (!s, memref<2x2x512xf8E8M0FNU>, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment_scales/tensor
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @f(%s: !s, %out: memref<200x7xf8E8M0FNU, strided<[8, 1]>>, %i: index) {
  // expected-error @+1 {{tc.store_fragment_scales: tensor must be a static, contiguous memref of f8E8M0FNU [.., 200, 7], as rows and scales say, or of their blocks [.., rows / 128, scales / 4, 512], with an index for each dimension before, got memref<200x7xf8E8M0FNU, strided<[8, 1]>>}}
  "tc.store_fragment_scales"(%s, %out, %i, %i) {rows = 200 : i64, scales = 7 : i64,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<200x7xf8E8M0FNU, strided<[8, 1]>>, index, index) -> ()
  return
}
