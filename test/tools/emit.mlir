// REQUIRES: ptxas
// RUN: %tc-opt %s --pipeline=matmul --emit=llvm | %filecheck %s --check-prefix=LLVM
// RUN: %tc-opt %s --pipeline=matmul --emit=ptx | %filecheck %s --check-prefix=PTX
// RUN: %tc-opt %s --pipeline=matmul --emit=cubin -o %t.cubin
// RUN: %PYTHON -c "assert open('%t.cubin', 'rb').read(4) == b'\x7fELF'"
// RUN: %tc-opt %s --pipeline=matmul --emit=sass | %filecheck %s --check-prefix=SASS
// RUN: %tc-opt %s --raise-to-tc --tile-gemm --emit=pretty | %filecheck %s --check-prefix=PRETTY

// LLVM: define {{.*}}@matmul
// LLVM: llvm.nvvm.tcgen05.mma
// PTX: .target sm_100a
// PTX: .visible .entry matmul
// PTX: tcgen05.mma
// SASS: UTCHMMA
// PRETTY: tc.mma %
func.func @matmul(%a: tensor<8x16xf16>, %b: tensor<16x8xf16>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x8xf16>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}
