// Results that TMA cannot store, each with a way out.
// RUN: %tc-opt --split-input-file --verify-diagnostics --tile-gemm="{n-tile=64 store=tma}" %s

func.func @pitch(%a: tensor<8x24xf16>, %b: tensor<20x24xf16>) -> tensor<8x20xf16> {
  // expected-error @+1 {{expected rows of the output of a multiple of 16 in [16, 1099511627760] bytes with store=tma, got 20 x 2 = 40 (they are strides of a tensor map, }}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<8x24xf16>, tensor<20x24xf16>) -> tensor<8x20xf16>
  return %c : tensor<8x20xf16>
}

// -----

func.func @exchanged(%a: tensor<8x24xf16>, %b: tensor<24x24xf16>) -> tensor<24x8xf16> {
  // expected-error @+1 {{expected store=direct with exchanged operands, got tma: with exchanged operands each thread has a column of the output, not a row; take swap=never or store=direct}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk", out_layout = "nm"} : (tensor<8x24xf16>, tensor<24x24xf16>) -> tensor<24x8xf16>
  return %c : tensor<24x8xf16>
}

// -----

func.func @quantised(%a: tensor<40x16xf16>, %b: tensor<64x16xf16>, %norm: tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) {
  // expected-error @+1 {{expected store=direct with a quantised result, got tma: each thread stores the elements and the scales of its row itself; take store=direct}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x16xf16>, tensor<64x16xf16>) -> tensor<40x64xf32>
  %q:2 = "tc.quantise_blocks"(%c, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return %q#0, %q#1 : tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>
}
