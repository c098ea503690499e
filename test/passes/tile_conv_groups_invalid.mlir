// Groups that no tile has for itself.
// RUN: %tc-opt %s --split-input-file --tile-conv-implicit-gemm="{n-tile=32}" --verify-diagnostics
// RUN: %exits 3 %tc-opt %s --tile-conv-shift-reuse="{halo=refresh n-tile=16}" --split-input-file | %filecheck %s --check-prefix=HALO

func.func @other_group(%x: tensor<1x9x9x48xf16>, %w: tensor<32x3x3x24xf16>) -> tensor<1x7x7x32xf32> {
  // expected-error @+1 {{expected groups whose input channels fill a multiple of 32 bytes, got 24 channels of 2 bytes (an mma sums over 32 bytes, and would otherwise reach into the next group); pad the channels of each group with zeros}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc", groups = 2 : i64} : (tensor<1x9x9x48xf16>, tensor<32x3x3x24xf16>) -> tensor<1x7x7x32xf32>
  return %y : tensor<1x7x7x32xf32>
}

// -----

// HALO: expected groups of a multiple of 64 channels with halo=refresh, got 32 (TMA boxes have 128 bytes of channels, and would reach into the next group); use halo=mask
func.func @part_of_a_group(%x: tensor<1x9x9x64xf16>, %w: tensor<96x3x3x32xf16>) -> tensor<1x7x7x96xf32> {
  // expected-error @+1 {{expected tiles whose output channels divide the 48 output channels of a group, got 32 (all columns of an mma multiply the same input channels); take n-tile=16, or pad each group with zero output channels to a multiple of 16}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc", groups = 2 : i64} : (tensor<1x9x9x64xf16>, tensor<96x3x3x32xf16>) -> tensor<1x7x7x96xf32>
  return %y : tensor<1x7x7x96xf32>
}
