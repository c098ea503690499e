// What only the epilogues of gemm compute is refused by name elsewhere.
// RUN: %tc-opt --split-input-file --verify-diagnostics --tile-matmul-warp %s
// RUN: %exits 3 %tc-opt --convert-to-simt={rows=4} %S/Inputs/gated_gemv.mlir 2>&1 | %filecheck --check-prefix=SIMT %s
// RUN: %exits 3 %tc-opt --tile-gemv-padded-n %S/Inputs/gated_gemv.mlir 2>&1 | %filecheck --check-prefix=PADDED %s
// RUN: %exits 3 %tc-opt --convert-to-simt='{quantise-apart=false rows=4}' %S/Inputs/quantised_gemv.mlir 2>&1 | %filecheck --check-prefix=QSIMT %s
// RUN: %exits 3 %tc-opt --tile-gemv-padded-n %S/Inputs/quantised_gemv.mlir 2>&1 | %filecheck --check-prefix=QPADDED %s
// RUN: %tc-opt --split-launches={quantise-apart=true} --convert-to-simt={rows=4} %S/Inputs/quantised_gemv.mlir
// RUN: %tc-opt --pipeline=gemm %S/Inputs/quantised_gemv.mlir --emit=ptx

// QSIMT: quantised_gemv.mlir:4:12: error: expected results of one tensor in convert-to-simt, got tc.quantise_blocks (no thread has all columns of a block); take pipeline gemm, or quantise by a launch of its own, as split-launches{quantise-apart=true} makes it
// QPADDED: quantised_gemv.mlir:4:12: error: expected results of one tensor in tile-gemv-padded-n, got tc.quantise_blocks

// SIMT: gated_gemv.mlir:5:8: error: expected a result for every sum in convert-to-simt, got one result for each two columns, as a gated activation makes; take pipeline gemm, or return the sums
// PADDED: gated_gemv.mlir:5:8: error: expected a result for every sum in tile-gemv-padded-n, got one result for each two columns, as a gated activation makes; take pipeline gemm, or return the sums

func.func @gated(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>) -> tensor<16x16xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<16x16xf16>, tensor<16x32xf16>) -> tensor<16x32xf32>
  // expected-error @+1 {{expected a result for every sum in tile-matmul-warp, got one result for each two columns, as a gated activation makes; take pipeline gemm, or return the sums}}
  %d = "tc.epilogue"(%c) ({
  ^bb0(%gate: f32, %value: f32):
    %v = arith.mulf %gate, %value : f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<16x32xf32>) -> tensor<16x16xf32>
  return %d : tensor<16x16xf32>
}

// -----

func.func @fp8(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>) -> tensor<16x32xf8E5M2> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<16x16xf16>, tensor<16x32xf16>) -> tensor<16x32xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %t = arith.truncf %s : f32 to f8E5M2
    // expected-error @+1 {{expected arith.negf of f32, f16, bf16, i16 or i32 in an epilogue in tile-matmul-warp, got f8E5M2 (registers have no bytes, and fp8 is only converted, PTX ISA 9.7.9.21); extend first and round last, or take pipeline gemm}}
    %u = arith.negf %t : f8E5M2
    "tc.yield"(%u) : (f8E5M2) -> ()
  }) : (tensor<16x32xf32>) -> tensor<16x32xf8E5M2>
  return %d : tensor<16x32xf8E5M2>
}

// -----

func.func @quantised(%a: tensor<16x16xf16>, %b: tensor<16x64xf16>) -> (tensor<16x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<16x16xf16>, tensor<16x64xf16>) -> tensor<16x64xf32>
  // expected-error @+1 {{expected results of one tensor in tile-matmul-warp, got tc.quantise_blocks (no thread has all columns of a block); take pipeline gemm, or quantise by a launch of its own, as split-launches{quantise-apart=true} makes it}}
  %q, %s = "tc.quantise_blocks"(%c) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<16x64xf32>) -> (tensor<16x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return %q, %s : tensor<16x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>
}
