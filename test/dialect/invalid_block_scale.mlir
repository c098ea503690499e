// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Block-scaled ops and the tensor maps of bytes; test_rules.py asks for both examples of every rule.

// legal: tc.mma_block_scale/kind
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/kind
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: kind must be one of "mxf8f6f4", "mxf4", "mxf4nvf4", got "f16"}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "f16", a_type = "e2m1", b_type = "e2m1",
      scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/accumulate-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/accumulate-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: index) {
  // expected-error @+1 {{tc.mma_block_scale: accumulate must be i1 (it becomes the predicate enable-input-d), got index}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, index) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/types
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf8f6f4", a_type = "e4m3",
      b_type = "e2m3", scale_type = "ue8m0", block = 32 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/types
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: a_type and b_type must be e2m1 for kind mxf4nvf4, got e4m3 and e2m1}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e4m3",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/scale-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue8m0", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/scale-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: scale_type must be ue8m0 for kind mxf4, got ue4m3}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4", a_type = "e2m1", b_type = "e2m1",
      scale_type = "ue4m3", block = 32 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/block
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue8m0", block = 32 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/block
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: block must be 16 for kind mxf4nvf4 with ue4m3 scales, got 32: the scale vector sizes that the kind has}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 32 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/operands
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/operands
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: A and B must be K-major tiles of i8, got !tc.smem<array<i64: 128, 64>, f16, "K", "128B">: 4- and 6-bit elements cannot be transposed, and the op's types say what the bytes are}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/operands
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.tmem<array<i64: 128, 128>, i8>
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/operands
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: A and B must be K-major tiles of i8, got !tc.tmem<array<i64: 128, 64>, f16>: 4- and 6-bit elements cannot be transposed, and the op's types say what the bytes are}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/d-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/d-type
!d = !tc.tmem<array<i64: 128, 16>, f16>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: D must be f32, got f16: block-scaled kinds accumulate in f32}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/m
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/m
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 64, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: A must have 128 rows, got 64: block-scaled kinds have no other M with cta_group::1, and a CTA of a pair has half of M = 256; fill up with zeros}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/n-range
!d = !tc.tmem<array<i64: 128, 8>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 8, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/n-range
!d = !tc.tmem<array<i64: 128, 264>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 264, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: N must be a multiple of 8 in [8, 256] for M = 128, cta_group::1, got 264: the instruction descriptor holds N/8; nearest legal: 256}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/n-of-d
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/n-of-d
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: D must have as many columns as B has rows (N), both halves with cta_group = 2, got 32 columns and N = 16}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/slices
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/slices
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: a_slice and b_slice must be in [0, 4) and [0, 4), got 3 and 4: an instruction reads 32 bytes of every row}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 4 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/scale-element
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/scale-element
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sfa = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sfa, %sfb: !d, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: SFA and SFB must be tiles of i8 in tensor memory, got !tc.tmem<array<i64: 128, 16>, f32>: a scale is a byte}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sfa, !d, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/scale-ids
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf8f6f4", a_type = "e4m3",
      b_type = "e2m3", scale_type = "ue8m0", block = 32 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 3 : i64, sfb_id = 2 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/scale-ids
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: sfa_id and sfb_id must be 0 for 4 scales per row (kind mxf4nvf4, block 16), got 0 and 1: they name the byte of the column where the step's scales begin}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 1 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale/scale-columns
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sfa = !tc.tmem<array<i64: 128, 64>, i8>
!sfb = !tc.tmem<array<i64: 128, 16>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sfa, %sfb: !sfb, %c: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 12 : i64, sfb_column = 3 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sfa, !sfb, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale/scale-columns
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sfa = !tc.tmem<array<i64: 128, 16>, i8>
!sfb = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %sfa: !sfa, %sfb: !sfb, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale: sfa must have columns [1, 5) for the scales of 128 rows, got 4 columns: 32 rows share a column}}
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 3 : i64, b_slice = 3 : i64,
      sfa_column = 1 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sfa, !sfb, i1) -> ()
  return
}

// -----

// legal: tc.cp_scales/source
!s = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
!t = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%s: !s, %t: !t) {
  %c = arith.constant 12 : index
  "tc.cp_scales"(%s, %t, %c) {block = 3 : i64} : (!s, !t, index) -> ()
  return
}

// -----

// illegal: tc.cp_scales/source
!s = !tc.smem<array<i64: 128, 32>, i8, "K", "32B">
!t = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%s: !s, %t: !t) {
  %c = arith.constant 12 : index
  // expected-error @+1 {{tc.cp_scales: source must be a K-major tile of i8 with k = 16 and no swizzle, got !tc.smem<array<i64: 128, 32>, i8, "K", "32B">: tcgen05.cp.32x128b copies rows of 16 bytes, and scales lie as 8 rows after each other}}
  "tc.cp_scales"(%s, %t, %c) {block = 3 : i64} : (!s, !t, index) -> ()
  return
}

// -----

// legal: tc.cp_scales/target
!s = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
!t = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%s: !s, %t: !t) {
  %c = arith.constant 12 : index
  "tc.cp_scales"(%s, %t, %c) {block = 3 : i64} : (!s, !t, index) -> ()
  return
}

// -----

// illegal: tc.cp_scales/target
!s = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
!t = !tc.tmem<array<i64: 128, 16>, f32>
func.func @f(%s: !s, %t: !t) {
  %c = arith.constant 12 : index
  // expected-error @+1 {{tc.cp_scales: target must be a tile of i8 in tensor memory, got !tc.tmem<array<i64: 128, 16>, f32>: a scale is a byte}}
  "tc.cp_scales"(%s, %t, %c) {block = 3 : i64} : (!s, !t, index) -> ()
  return
}

// -----

// legal: tc.cp_scales/block
!s = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
!t = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%s: !s, %t: !t) {
  %c = arith.constant 12 : index
  "tc.cp_scales"(%s, %t, %c) {block = 3 : i64} : (!s, !t, index) -> ()
  return
}

// -----

// illegal: tc.cp_scales/block
!s = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
!t = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%s: !s, %t: !t) {
  %c = arith.constant 12 : index
  // expected-error @+1 {{tc.cp_scales: block must be in [0, 4), got 4: source has 128 rows, and one copy takes 32}}
  "tc.cp_scales"(%s, %t, %c) {block = 4 : i64} : (!s, !t, index) -> ()
  return
}

// -----

// legal: tc.cp_scales/columns
!s = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
!t = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%s: !s, %t: !t) {
  %c = arith.constant 12 : index
  "tc.cp_scales"(%s, %t, %c) {block = 3 : i64} : (!s, !t, index) -> ()
  return
}

// -----

// illegal: tc.cp_scales/columns
!s = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
!t = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%s: !s, %t: !t) {
  %c = arith.constant 13 : index
  // expected-error @+1 {{tc.cp_scales: target must have columns [13, 17) for this block, got 16 columns}}
  "tc.cp_scales"(%s, %t, %c) {block = 3 : i64} : (!s, !t, index) -> ()
  return
}

// -----

// legal: tc.make_tensor_map/dtype
func.func @f(%x: memref<256x128xi8>) {
  %m = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 128, 256>,
      strides = array<i64: 128>, box = array<i64: 128, 64>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B", dtype = "u8"} : (memref<256x128xi8>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/dtype
func.func @f(%x: memref<256x128xi8>) {
  // expected-error @+1 {{tc.make_tensor_map: a map of i8 must have dtype "u8" or "u4_align16b" or "u6_align16b", got none: the driver has types for bytes, and for elements packed into them, but none of 8 bits with a meaning}}
  %m = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 128, 256>,
      strides = array<i64: 128>, box = array<i64: 128, 64>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<256x128xi8>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/padded
func.func @f(%x: memref<256x64xi8>) {
  %m = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 128, 256>,
      strides = array<i64: 64>, box = array<i64: 128, 64>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B", dtype = "u4_align16b"}
      : (memref<256x64xi8>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/padded
func.func @f(%x: memref<256x96xi8>) {
  // expected-error @+1 {{tc.make_tensor_map: a map of dtype "u6_align16b" needs dims[0] a multiple of 128, box[0] = 128 and strides that are multiples of 32 bytes, got 128, 64 and [96]; pad K, or take dtype "u8" where the tensor core reads the elements packed}}
  %m = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 128, 256>,
      strides = array<i64: 96>, box = array<i64: 64, 64>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B", dtype = "u6_align16b"}
      : (memref<256x96xi8>) -> !tc.tensor_map
  return
}
