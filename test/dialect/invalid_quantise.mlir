// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// legal: tc.quantise_blocks/types
func.func @f(%y: tensor<40x64xf32>) {
  %q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return
}

// -----

// illegal: tc.quantise_blocks/types
func.func @f(%y: tensor<40x64xf16>) {
  // expected-error @+1 {{tc.quantise_blocks: values must be static, of f32 and rank 2 or more, codes and scales f4E2M1FN with f8E4M3FN, f4E2M1FN with f8E8M0FNU, f8E4M3FN with f8E8M0FNU, f8E5M2 with f8E8M0FNU, got tensor<40x64xf16> to tensor<40x64xf4E2M1FN> with tensor<1x1x512xf8E4M3FN>: what tcgen05.mma.block_scale multiplies}}
  %q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x64xf16>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return
}

// -----

// illegal: tc.quantise_blocks/types
func.func @f(%y: tensor<40x64xf32>) {
  // expected-error @+1 {{tc.quantise_blocks: values must be static, of f32 and rank 2 or more, codes and scales f4E2M1FN with f8E4M3FN, f4E2M1FN with f8E8M0FNU, f8E4M3FN with f8E8M0FNU, f8E5M2 with f8E8M0FNU, got tensor<40x64xf32> to tensor<40x64xf8E5M2> with tensor<1x1x512xf8E4M3FN>: what tcgen05.mma.block_scale multiplies}}
  %q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x64xf32>) -> (tensor<40x64xf8E5M2>, tensor<1x1x512xf8E4M3FN>)
  return
}

// -----

// legal: tc.quantise_blocks/norm
func.func @f(%y: tensor<40x64xf32>, %norm: tensor<f32>) {
  %q:2 = "tc.quantise_blocks"(%y, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return
}

// -----

// illegal: tc.quantise_blocks/norm
func.func @f(%y: tensor<40x64xf32>, %norm: tensor<f32>) {
  // expected-error @+1 {{tc.quantise_blocks: norm must be a tensor<f32>, and with ue8m0 scales left out, got tensor<f32>: MX formats have block scales only}}
  %q:2 = "tc.quantise_blocks"(%y, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E8M0FNU>)
  return
}

// -----

// illegal: tc.quantise_blocks/norm
func.func @f(%y: tensor<40x64xf32>, %norm: tensor<1xf32>) {
  // expected-error @+1 {{tc.quantise_blocks: norm must be a tensor<f32>, and with ue8m0 scales left out, got tensor<1xf32>: MX formats have block scales only}}
  %q:2 = "tc.quantise_blocks"(%y, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<1xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return
}

// -----

// legal: tc.quantise_blocks/shapes
func.func @f(%y: tensor<2x40x96xf32>) {
  %q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x40x96xf32>) -> (tensor<2x40x96xf8E4M3FN>, tensor<2x1x1x512xf8E8M0FNU>)
  return
}

// -----

// legal: tc.quantise_blocks/shapes
func.func @f(%y: tensor<40x96xf32>) {
  %q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x96xf32>) -> (tensor<40x96xf8E4M3FN>, tensor<40x3xf8E8M0FNU>)
  return
}

// -----

// illegal: tc.quantise_blocks/shapes
func.func @f(%y: tensor<40x72xf32>) {
  // expected-error @+1 {{tc.quantise_blocks: codes must have the shape of values, [40, 72], whose rows are whole blocks of 16, and scales then [1, 1, 512], or [40, 4] row-major, got [40, 72] and [1, 1, 512]; pad the rows with zeros}}
  %q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x72xf32>) -> (tensor<40x72xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return
}

// -----

// illegal: tc.quantise_blocks/shapes
func.func @f(%y: tensor<40x64xf32>) {
  // expected-error @+1 {{tc.quantise_blocks: codes must have the shape of values, [40, 64], whose rows are whole blocks of 16, and scales then [1, 1, 512], or [40, 4] row-major, got [40, 64] and [4, 40]; pad the rows with zeros}}
  %q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<4x40xf8E4M3FN>)
  return
}

// -----

// legal: tc.quantise_rows/types
func.func @f(%v: vector<32x32xf32>) {
  %q:2 = "tc.quantise_rows"(%v) : (vector<32x32xf32>) -> (vector<32x32xf8E5M2>, vector<32x1xf8E8M0FNU>)
  return
}

// -----

// illegal: tc.quantise_rows/types
func.func @f(%v: vector<16x32xf32>) {
  // expected-error @+1 {{tc.quantise_rows: values must be vector<32 x columns x f32> (one row per thread of a warp), codes and scales f4E2M1FN with f8E4M3FN, f4E2M1FN with f8E8M0FNU, f8E4M3FN with f8E8M0FNU, f8E5M2 with f8E8M0FNU, f4E2M1FN as i8, got vector<16x32xf32> to vector<16x32xf8E5M2> with vector<16x1xf8E8M0FNU>}}
  %q:2 = "tc.quantise_rows"(%v) : (vector<16x32xf32>) -> (vector<16x32xf8E5M2>, vector<16x1xf8E8M0FNU>)
  return
}

// -----

// legal: tc.quantise_rows/columns
func.func @f(%v: vector<32x32xf32>) {
  %q:2 = "tc.quantise_rows"(%v) : (vector<32x32xf32>) -> (vector<32x16xi8>, vector<32x2xf8E4M3FN>)
  return
}

// -----

// illegal: tc.quantise_rows/columns
func.func @f(%v: vector<32x48xf32>) {
  // expected-error @+1 {{tc.quantise_rows: of 48 columns of values codes must have 24 and scales 3, which must be 1, 2 or 4 (bytes of a register), got [24, 3]}}
  %q:2 = "tc.quantise_rows"(%v) : (vector<32x48xf32>) -> (vector<32x24xi8>, vector<32x3xf8E4M3FN>)
  return
}

// -----

// illegal: tc.quantise_rows/columns
func.func @f(%v: vector<32x32xf32>) {
  // expected-error @+1 {{tc.quantise_rows: of 32 columns of values codes must have 16 and scales 2, which must be 1, 2 or 4 (bytes of a register), got [32, 2]}}
  %q:2 = "tc.quantise_rows"(%v) : (vector<32x32xf32>) -> (vector<32x32xi8>, vector<32x2xf8E4M3FN>)
  return
}

// -----

// legal: tc.store_scales/value
func.func @f(%v: vector<32x2xf8E8M0FNU>, %out: memref<2x2x512xf8E8M0FNU>, %i: index) {
  "tc.store_scales"(%v, %out, %i, %i) {rows = 130 : i64, scales = 8 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x2xf8E8M0FNU>, memref<2x2x512xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_scales/value
func.func @f(%v: vector<32x3xf8E8M0FNU>, %out: memref<2x2x512xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_scales: value must be vector<32 x scales x element> of 1, 2 or 4 scales (bytes of a register), of the tensor's element, f8E4M3FN or f8E8M0FNU, got vector<32x3xf8E8M0FNU> to memref<2x2x512xf8E8M0FNU>}}
  "tc.store_scales"(%v, %out, %i, %i) {rows = 130 : i64, scales = 8 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x3xf8E8M0FNU>, memref<2x2x512xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// legal: tc.store_scales/tensor
func.func @f(%v: vector<32x4xf8E4M3FN>, %out: memref<3x1x1x512xf8E4M3FN>, %i: index) {
  "tc.store_scales"(%v, %out, %i, %i, %i) {rows = 128 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 3>} : (vector<32x4xf8E4M3FN>, memref<3x1x1x512xf8E4M3FN>, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_scales/tensor
func.func @f(%v: vector<32x4xf8E4M3FN>, %out: memref<128x16xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{tc.store_scales: tensor must be a static, contiguous memref of blocks [.., rows / 128, scales / 4, 512], got memref<128x16xf8E4M3FN>}}
  "tc.store_scales"(%v, %out, %i, %i) {rows = 128 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x4xf8E4M3FN>, memref<128x16xf8E4M3FN>, index, index) -> ()
  return
}

// -----

// legal: tc.store_scales/indices
func.func @f(%v: vector<32x4xf8E4M3FN>, %out: memref<1x1x512xf8E4M3FN>, %i: index) {
  "tc.store_scales"(%v, %out, %i, %i) {rows = 1 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x4xf8E4M3FN>, memref<1x1x512xf8E4M3FN>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_scales/indices
func.func @f(%v: vector<32x4xf8E4M3FN>, %out: memref<1x1x512xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{tc.store_scales: expected an index per dimension of the tensor before its blocks, then a row and a scale (2), got 3}}
  "tc.store_scales"(%v, %out, %i, %i, %i) {rows = 1 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 3>} : (vector<32x4xf8E4M3FN>, memref<1x1x512xf8E4M3FN>, index, index, index) -> ()
  return
}

// -----

// legal: tc.store_scales/rows
func.func @f(%v: vector<32x4xf8E4M3FN>, %out: memref<2x1x512xf8E4M3FN>, %i: index) {
  "tc.store_scales"(%v, %out, %i, %i) {rows = 256 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x4xf8E4M3FN>, memref<2x1x512xf8E4M3FN>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_scales/rows
func.func @f(%v: vector<32x4xf8E4M3FN>, %out: memref<2x1x512xf8E4M3FN>, %i: index) {
  // expected-error @+1 {{tc.store_scales: rows must be in [129, 256], the rows of 2 blocks, got 128}}
  "tc.store_scales"(%v, %out, %i, %i) {rows = 128 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x4xf8E4M3FN>, memref<2x1x512xf8E4M3FN>, index, index) -> ()
  return
}

// -----

// legal: tc.store_scales/scales
func.func @f(%v: vector<32x2xf8E8M0FNU>, %out: memref<2x2x512xf8E8M0FNU>, %i: index) {
  "tc.store_scales"(%v, %out, %i, %i) {rows = 130 : i64, scales = 5 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x2xf8E8M0FNU>, memref<2x2x512xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_scales/scales
func.func @f(%v: vector<32x2xf8E8M0FNU>, %out: memref<2x2x512xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_scales: scales must be in [5, 8], the scales of 2 blocks, got 4}}
  "tc.store_scales"(%v, %out, %i, %i) {rows = 130 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x2xf8E8M0FNU>, memref<2x2x512xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_scales/scales
func.func @f(%v: vector<32x2xf8E8M0FNU>, %out: memref<2x2x512xf8E8M0FNU>, %i: index) {
  // expected-error @+1 {{tc.store_scales: scales must be in [5, 8], the scales of 2 blocks, got 9}}
  "tc.store_scales"(%v, %out, %i, %i) {rows = 130 : i64, scales = 9 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x2xf8E8M0FNU>, memref<2x2x512xf8E8M0FNU>, index, index) -> ()
  return
}

// -----

// legal: tc.quantise_blocks/scale-rounding
func.func @f(%y: tensor<40x32xf32>) {
  %q:2 = "tc.quantise_blocks"(%y) {scale_rounding = "rceil", operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x32xf32>) -> (tensor<40x32xf8E4M3FN>, tensor<1x1x512xf8E8M0FNU>)
  return
}

// -----

// illegal: tc.quantise_blocks/scale-rounding
func.func @f(%y: tensor<40x32xf32>) {
  // expected-error @+1 {{tc.quantise_blocks: scale_rounding must be "floor" or "rceil", or left out for floor, and with f8E4M3FN scales, which are rounded to nearest even, left out, got "even" with f8E8M0FNU}}
  %q:2 = "tc.quantise_blocks"(%y) {scale_rounding = "even", operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x32xf32>) -> (tensor<40x32xf8E4M3FN>, tensor<1x1x512xf8E8M0FNU>)
  return
}

// -----

// illegal: tc.quantise_blocks/scale-rounding
func.func @f(%y: tensor<40x64xf32>) {
  // expected-error @+1 {{tc.quantise_blocks: scale_rounding must be "floor" or "rceil", or left out for floor, and with f8E4M3FN scales, which are rounded to nearest even, left out, got "rceil" with f8E4M3FN}}
  %q:2 = "tc.quantise_blocks"(%y) {scale_rounding = "rceil", operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x64xf32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return
}

// -----

// legal: tc.quantise_rows/scale-rounding
func.func @f(%v: vector<32x32xf32>) {
  %q:2 = "tc.quantise_rows"(%v) {scale_rounding = "floor"} : (vector<32x32xf32>) -> (vector<32x32xf8E5M2>, vector<32x1xf8E8M0FNU>)
  return
}

// -----

// illegal: tc.quantise_rows/scale-rounding
func.func @f(%v: vector<32x32xf32>) {
  // expected-error @+1 {{tc.quantise_rows: scale_rounding must be "floor" or "rceil", or left out for floor, and with f8E4M3FN scales, which are rounded to nearest even, left out, got 1 : i64 with f8E8M0FNU}}
  %q:2 = "tc.quantise_rows"(%v) {scale_rounding = 1 : i64} : (vector<32x32xf32>) -> (vector<32x32xf8E5M2>, vector<32x1xf8E8M0FNU>)
  return
}
