// RUN: %tc-opt %s --target=sm_90 --raise-to-tc --split-launches --tile-matmul-warp="{block-m=32 block-n=16 block-k=32}" --pipeline-tma --double-buffer-fragments --plan-staging --convert-tc-to-nvvm --interleave-stores | %filecheck %s
// RUN: %tc-opt %s --target=sm_90 --raise-to-tc --split-launches --tile-matmul-warp="{block-m=16 block-n=16 block-k=32}" --pipeline-tma --double-buffer-fragments --plan-staging --convert-tc-to-nvvm --interleave-stores | %filecheck %s --check-prefix=ONE

// Two rows of atoms a warp, two K steps of two columns of atoms in the last slot: the first row is
// stored while the second is multiplied.
// CHECK: scf.for
// CHECK: scf.yield %
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-NOT: llvm.store
// CHECK-COUNT-4: mma.sync
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: nvvm.bar.warp.sync
// CHECK-COUNT-4: mma.sync
// CHECK-NOT: mma.sync
// CHECK: nvvm.shfl.sync
// CHECK: llvm.store
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: mma.sync
// CHECK: llvm.store
// CHECK-NOT: nvvm.bar.warp.sync

// One row: there is nothing to multiply meanwhile.
// ONE: llvm.func
// ONE-NOT: nvvm.bar.warp.sync
// ONE: llvm.store
// ONE-NOT: nvvm.bar.warp.sync
func.func @product(%a: tensor<64x64xf16>, %b: tensor<64x32xf16>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %c = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x32xf16>) outs(%init : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %c : tensor<64x32xf32>
}
