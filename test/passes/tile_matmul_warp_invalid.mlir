// RUN: %tc-opt --split-input-file --verify-diagnostics --tile-matmul-warp='{target=sm_80}' %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp='{block-m=24}' %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=POWER %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp='{block-m=128 block-n=128 warps-m=1 warps-n=2}' %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=REGISTERS %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp='{atom=mma.m16n8k8.tf32}' %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=ATOM %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp='{target=sm_75}' %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=TARGET %s
// RUN: %exits 3 %tc-opt --pipeline='matmul-warp{stages=1}' %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=STAGES %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp='{copy=cp.async}' --pipeline-cp-async='{stages=6}' --plan-staging %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=MEMORY %s

// POWER: warp_product.mlir:2:8: error: expected block-m to be a power of two, got 24
// REGISTERS: error: expected at most 128 accumulators a thread (of 255 registers), got 256: a warp's tile is 128 x 64; take more warps
// ATOM: error: expected an mma.sync atom of f16 operands, got mma.m16n8k8.tf32 (tf32); the default is mma.m16n8k16.f16
// TARGET: error: expected one target of sm_80, sm_90, sm_90a, sm_100a, got sm_75
// STAGES: error: expected stages of at least 2, or 0 to choose, got 1
// MEMORY: error: expected at most 232448 bytes of shared memory (sm_100a), got 294912 (tiles: 6 x 16384 bytes, 6 x 32768 bytes)

// Each kind of operand that ldmatrix cannot serve has a remark; 16-bit ones have none.
func.func @tf32(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>) -> tensor<32x32xf32> {
  // expected-remark @+1 {{A takes plain loads from shared memory, not ldmatrix: the tile is MN-major and ldmatrix.trans transposes units of 16 bits, elements have 32}}
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "nk"} : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}

// -----

func.func @i8(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>) -> tensor<32x32xi32> {
  // expected-remark @+1 {{B takes plain loads from shared memory, not ldmatrix: the tile is MN-major and ldmatrix.trans transposes units of 16 bits, elements have 8}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<32x64xi8>, tensor<64x32xi8>) -> tensor<32x32xi32>
  return %c : tensor<32x32xi32>
}

// -----

func.func @f16(%a: tensor<64x32xf16>, %b: tensor<64x32xf16>) -> tensor<32x32xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "kn"} : (tensor<64x32xf16>, tensor<64x32xf16>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}

// -----

func.func @fp8(%a: tensor<32x64xf8E5M2>, %b: tensor<32x64xf8E5M2>) -> tensor<32x32xf32> {
  // expected-error @+1 {{expected operands that mma.sync of sm_80 multiplies, got f8E5M2 (e4m3 and e5m2 need sm_89 or newer, PTX ISA 9.7.14.5); take target sm_90 or sm_90a or sm_100a, or widen the operands to f16}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<32x64xf8E5M2>, tensor<32x64xf8E5M2>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}

// -----

func.func @narrow(%a: tensor<32x33xf16>, %b: tensor<33x32xf16>) -> tensor<32x32xf32> {
  // expected-error @+1 {{expected rows of A of a multiple of 4 bytes, got 66 (cp.async copies (4, 8, 16) bytes from addresses that are multiples of that, PTX ISA 9.7.9.25.3); pad the innermost dimension with zeros}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<32x33xf16>, tensor<33x32xf16>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}

// -----

func.func @columns(%a: tensor<16x64xf16>, %b: tensor<64x8xf16>) -> tensor<8x16xf32> {
  // expected-error @+1 {{expected out_layout = "mn" in tile-matmul-warp, got "nm"}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", out_layout = "nm"} : (tensor<16x64xf16>, tensor<64x8xf16>) -> tensor<8x16xf32>
  return %c : tensor<8x16xf32>
}

// -----

func.func @parts(%a: tensor<16x64xf16>, %b: tensor<64x8xf16>) -> tensor<2x16x8xf32> {
  // expected-error @+1 {{expected whole sums in tile-matmul-warp, got k_part = 32; take tile-gemm}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", k_part = 32 : i64} : (tensor<16x64xf16>, tensor<64x8xf16>) -> tensor<2x16x8xf32>
  return %c : tensor<2x16x8xf32>
}

// -----

func.func @shared(%a: tensor<2x16x64xf16>, %b: tensor<64x8xf16>) -> tensor<2x16x8xf32> {
  // expected-error @+1 {{expected operands of the same batch in tile-matmul-warp, got a b without}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<2x16x64xf16>, tensor<64x8xf16>) -> tensor<2x16x8xf32>
  return %c : tensor<2x16x8xf32>
}
