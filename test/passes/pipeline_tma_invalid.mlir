// RUN: %tc-opt --split-input-file --verify-diagnostics --tile-matmul-warp='{target=sm_90}' %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp='{copy=tma target=sm_80}' %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=TARGET %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp --pipeline-tma='{stages=1}' %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=STAGES %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp='{block-m=16 block-n=16 block-k=16}' --pipeline-tma='{stages=16}' %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=BARRIERS %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=16 block-n=16 block-k=16}' --pipeline-tma='{stages=15}' --plan-staging %S/Inputs/warp_product.mlir
// RUN: %exits 3 %tc-opt --tile-matmul-warp --pipeline-tma --pipeline-tma %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=TWICE %s
// RUN: %exits 3 %tc-opt --tile-matmul-warp --pipeline-tma='{stages=6}' --plan-staging %S/Inputs/warp_product.mlir 2>&1 | %filecheck --check-prefix=MEMORY %s

// TARGET: warp_product.mlir:2:8: error: expected a product that copy=tma can serve: sm_80 has no TMA; take copy=cp.async
// STAGES: error: expected stages of at least 2, or 0 to choose, got 1
// BARRIERS: error: expected stages of at most 15, got 16: a slot has one of the 16 barriers of a CTA (PTX ISA 9.7.13.1), of which tc.cta_barrier is another; take fewer (smallest accepted: stages=2), or copy=cp.async
// TWICE: error: expected one sequential loop that copies tiles
// MEMORY: error: expected at most 232448 bytes of shared memory (sm_100a), got 294960 (tiles: 6 x 16384 bytes, 6 x 32768 bytes)

// Rows that a tensor map can address have no remark, others have one.
func.func @f16(%a: tensor<64x32xf16>, %b: tensor<64x32xf16>) -> tensor<32x32xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "kn"} : (tensor<64x32xf16>, tensor<64x32xf16>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}

// -----

func.func @narrow(%a: tensor<32x36xf16>, %b: tensor<36x32xf16>) -> tensor<32x32xf32> {
  // expected-remark @+1 {{the copies are cp.async, not TMA: rows of A have 72 bytes, TMA addresses global memory in units of 16}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<32x36xf16>, tensor<36x32xf16>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}
