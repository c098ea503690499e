// Results that are not stored in tiles of this size.
// RUN: %tc-opt --split-input-file --verify-diagnostics --tile-gemm="{n-tile=64 epilogue-tile=128x32}" %s

func.func @quantised(%a: tensor<40x16xf16>, %b: tensor<64x16xf16>, %norm: tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) {
  // expected-error @+1 {{expected epilogue-tile=128x64 for results that are quantised, got 128x32: a thread stores the scales of 64 columns together; leave it out}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x16xf16>, tensor<64x16xf16>) -> tensor<40x64xf32>
  %q:2 = "tc.quantise_blocks"(%c, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return %q#0, %q#1 : tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>
}
