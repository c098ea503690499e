// RUN: %tc-opt --split-input-file --verify-diagnostics --target=sm_90a --tile-conv-smem-offset %s

// Whole sums, and parts that are no filter rows.
func.func @whole(%x: tensor<1x8x8x64xf16>, %w: tensor<3x3x64x16xf16>) -> tensor<1x8x8x16xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x64xf16>, tensor<3x3x64x16xf16>) -> tensor<1x8x8x16xf32>
  return %y : tensor<1x8x8x16xf32>
}

// -----

func.func @parts(%x: tensor<1x8x8x64xf16>, %w: tensor<3x3x64x16xf16>) -> tensor<9x1x8x8x16xf32> {
  // expected-error @+1 {{k_part, the elements of K that a CTA sums, must divide the 3 filter rows of 192 elements into equal parts, got 64 (a step of the main loop multiplies all taps of a filter row); let the pass split-conv-k{rows=true} choose it}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", k_part = 64 : i64}
      : (tensor<1x8x8x64xf16>, tensor<3x3x64x16xf16>) -> tensor<9x1x8x8x16xf32>
  return %y : tensor<9x1x8x8x16xf32>
}

// -----

// Bytes with their outputs last, which raise-to-tc repacks for sm_90a, and with their channels last.
func.func @bytes_across(%x: tensor<1x4x4x32xi8>, %w: tensor<3x3x32x16xi8>) -> tensor<1x2x2x16xi32> {
  // expected-error @+1 {{expected a filter of i8 with its input channels innermost, got layout hwcf (wgmma can transpose elements of 16 bits only}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"}
      : (tensor<1x4x4x32xi8>, tensor<3x3x32x16xi8>) -> tensor<1x2x2x16xi32>
  return %y : tensor<1x2x2x16xi32>
}

// -----

func.func @bytes_along(%x: tensor<1x4x4x32xi8>, %w: tensor<16x3x3x32xi8>) -> tensor<1x2x2x16xi32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"}
      : (tensor<1x4x4x32xi8>, tensor<16x3x3x32xi8>) -> tensor<1x2x2x16xi32>
  return %y : tensor<1x2x2x16xi32>
}
