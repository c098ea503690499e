// Where there is no assembler everything up to PTX works, and the cubin step says why not.
// RUN: %tc-opt %s --load-pass-plugin=%S/Inputs/no_ptxas.py --pipeline=matmul --emit=ptx | %filecheck %s --check-prefix=PTX
// RUN: rm -f %t.cubin
// RUN: %exits 2 %tc-opt %s --load-pass-plugin=%S/Inputs/no_ptxas.py --pipeline=matmul --emit=cubin -o %t.cubin | %filecheck %s --check-prefix=CUBIN
// RUN: %exits 2 ls %t.cubin

// PTX: .target sm_100a
// CUBIN: error: ptxas comes with the package no-such, which has wheels for Linux x86-64 and aarch64 only, got darwin
// CUBIN-SAME: everything up to PTX works here
func.func @matmul(%a: tensor<8x16xf16>, %b: tensor<16x8xf16>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x8xf16>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
