// RUN: %tc-opt %s --pipeline=gemm --emit=launches | %filecheck %s
// RUN: not %tc-opt %s --split-layers --emit=launches 2>&1 | %filecheck %s --check-prefix=EARLY

// Rows of 37 elements are repacked: bytes of the copy are those of rows of 40. W is first: few rows are N.
// CHECK: launch computes fused behind it arguments loaded stored results
// CHECK-NEXT: linear_repack0 repack - 1776 0 1920 0
// CHECK-NEXT: linear_repack1 repack - 1184 0 1280 0
// CHECK-NEXT: linear matmul addf, maximumf 96 3200 0 1536
// CHECK-NEXT: bytes 3056 3200 3200 1536
// CHECK-NEXT: between launches: 3200 bytes stored, 3200 bytes loaded

// EARLY: error: {{.*}}expected a kernel (llvm.func) with tc.params{{.*}} got level 'tensor'

#all = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
func.func @linear(%x: tensor<16x37xf16>, %w: tensor<24x37xf16>, %b: tensor<24xf32>) -> tensor<16x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x24xf32>) -> tensor<16x24xf32>
  %c = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                                      affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<16x37xf16>, tensor<24x37xf16>) outs(%f : tensor<16x24xf32>) -> tensor<16x24xf32>
  %y = linalg.generic {indexing_maps = [#all, #column, #all], iterator_types = ["parallel", "parallel"]}
      ins(%c, %b : tensor<16x24xf32>, tensor<24xf32>) outs(%e : tensor<16x24xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %u = arith.addf %s, %t : f32
    %r = arith.maximumf %u, %zero : f32
    linalg.yield %r : f32
  } -> tensor<16x24xf32>
  return %y : tensor<16x24xf32>
}
