// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Sparse and block-scaled; test_rules.py asks for both examples of every rule.

// legal: tc.mma_block_scale_sparse/kind
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/kind
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: kind must be one of "mxf8f6f4", "mxf4", "mxf4nvf4", got "f16"}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "f16", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/accumulate-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/accumulate-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i8) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: accumulate must be i1 (it becomes the predicate enable-input-d), got i8}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i8) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/types
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/types
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: a_type and b_type must be e2m1 for kind mxf4nvf4, got e4m3 and e2m1}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e4m3",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/scale-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/scale-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: scale_type must be ue8m0 for kind mxf4, got ue4m3}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/block
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/block
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: block must be 16 for kind mxf4nvf4 with ue4m3 scales, got 32: the scale vector sizes that the kind has}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 32 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/operands
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.tmem<array<i64: 128, 64>, i8>
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/operands
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: A and B must be K-major tiles of i8, got !tc.tmem<array<i64: 128, 64>, f16>: 4- and 6-bit elements cannot be transposed, and the op's types say what the bytes are}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/d-type
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/d-type
!d = !tc.tmem<array<i64: 128, 16>, i32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: D must be f32, got i32: block-scaled kinds accumulate in f32}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/m
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/m
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 64, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: A must have 128 rows, got 64: block-scaled kinds have no other M with cta_group::1, and a CTA of a pair has half of M = 256; fill up with zeros}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/n-range
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/n-range
!d = !tc.tmem<array<i64: 128, 264>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 264, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: N must be a multiple of 8 in [8, 256] for M = 128, cta_group::1, got 264: the instruction descriptor holds N/8; nearest legal: 256}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/n-of-d
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/n-of-d
!d = !tc.tmem<array<i64: 128, 32>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: D must have as many columns as B has rows (N), both halves with cta_group = 2, got 32 columns and N = 16}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/slices
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/slices
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: a_slice and b_slice must be in [0, 2) and [0, 2), got 1 and 2: a sparse instruction reads 32 bytes of every row of A, and 64 of B}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 2 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/b-span
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "64B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/b-span
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "32B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: a K-major B must not have swizzle "32B": the 64 bytes of a step would be in two columns, and a swizzled descriptor has no distance for them}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/metadata
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 6 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/metadata
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: metadata must be a tile of i32 with columns [3, 5), from a multiple of 2, got !tc.tmem<array<i64: 128, 8>, i32>}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 3 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/scale-element
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/scale-element
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: SFA and SFB must be tiles of i8 in tensor memory, got !tc.tmem<array<i64: 128, 64>, f16>: a scale is a byte}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/scale-ids
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf8f6f4", a_type = "e4m3",
      b_type = "e2m1", scale_type = "ue8m0", block = 32 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 3 : i64, sfb_id = 2 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/scale-ids
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: sfa_id and sfb_id must be 0 for 4 scales per row (kind mxf4nvf4, block 16), got 1 and 0: they name the byte of the column where the step's scales begin}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 1 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// legal: tc.mma_block_scale_sparse/scale-columns
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 12 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}

// -----

// illegal: tc.mma_block_scale_sparse/scale-columns
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 64>, i8, "K", "64B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!e = !tc.tmem<array<i64: 128, 8>, i32>
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @f(%d: !d, %a: !a, %b: !b, %e: !e, %sfa: !sf, %sfb: !sf, %c: i1) {
  // expected-error @+1 {{tc.mma_block_scale_sparse: sfa must have columns [13, 17) for the scales of 128 rows, got 16 columns: 32 rows share a column}}
  "tc.mma_block_scale_sparse"(%d, %a, %b, %e, %sfa, %sfb, %c) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      metadata_column = 2 : i64, sfa_column = 13 : i64, sfb_column = 12 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !e, !sf, !sf, i1) -> ()
  return
}
