// What tile-gemm cannot load, each with a way out.
// RUN: %tc-opt --split-input-file --verify-diagnostics --tile-gemm %s

func.func @transposed(%a: tensor<128x64xf32>, %b: tensor<64x40xf32>) -> tensor<128x40xf32> {
  // expected-error @+1 {{expected f32 operands with K innermost, got N (tf32 is MN-major only with swizzles of 32-byte atoms, PTX ISA 9.7.16.10.5, table 54, which !tc.smem has not); run repack-gemm first}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<128x64xf32>, tensor<64x40xf32>) -> tensor<128x40xf32>
  return %c : tensor<128x40xf32>
}

// -----

func.func @pitch(%a: tensor<8x24xi8>, %b: tensor<24x16xi8>) -> tensor<8x16xi32> {
  // expected-error @+1 {{expected K to be a multiple of 16, got K=24}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<8x24xi8>, tensor<24x16xi8>) -> tensor<8x16xi32>
  return %c : tensor<8x16xi32>
}
