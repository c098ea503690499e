// A residual of fp8 in registers: a pair of codes in one load, widened and rounded alone, stored as a pair.
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=16 block-k=16 copy=cp.async}' --pipeline-cp-async --double-buffer-fragments --plan-staging --convert-tc-to-nvvm --canonicalize --cse %s | %filecheck %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp='{target=sm_80}' %s 2>&1 | %filecheck --check-prefix=OLD %s

// OLD: error: expected f32, f16 or bf16 in an epilogue of sm_80, got f8E5M2 (cvt of e4m3 and e5m2 needs sm_89 or newer, PTX ISA 9.7.9.21); take target sm_90 or sm_90a or sm_100a, or store f16

// CHECK-LABEL: llvm.func @f(
// CHECK: llvm.load {{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK: "cvt.rn.f16x2.e5m2x2
// CHECK: "cvt.rn.satfinite.e4m3x2.f32
// CHECK: llvm.store {{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<1>
func.func @f(%a: tensor<32x16xf16>, %b: tensor<16x16xf16>, %r: tensor<32x16xf8E5M2>) -> tensor<32x16xf8E4M3FN> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<32x16xf16>, tensor<16x16xf16>) -> tensor<32x16xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %h = "tc.element"(%r) {map = affine_map<(m, n) -> (m, n)>} : (tensor<32x16xf8E5M2>) -> f8E5M2
    %w = arith.extf %h : f8E5M2 to f32
    %u = arith.addf %s, %w : f32
    %t = arith.truncf %u : f32 to f8E4M3FN
    "tc.yield"(%t) : (f8E4M3FN) -> ()
  }) : (tensor<32x16xf32>) -> tensor<32x16xf8E4M3FN>
  return %d : tensor<32x16xf8E4M3FN>
}
