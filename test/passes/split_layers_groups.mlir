// What is indexed by a part of the dimensions that a product takes as one is no epilogue's: heads of a batch are one.
// RUN: %tc-opt %s --split-layers --verify-diagnostics | %filecheck %s

// CHECK: func.func @scores_0_matmul(%{{.*}}: tensor<2x3x16x8xf16>, %{{.*}}: tensor<2x3x16x8xf16>, %{{.*}}: tensor<2x3xf32>) -> tensor<2x3x16x16xf32> attributes {tc.args = array<i64: 0, 1, 2, 5>, tc.order = 0 : i64}
// CHECK: arith.mulf
// CHECK: arith.mulf
// CHECK: func.func @scores_1_addf(%{{.*}}: tensor<2x3x16x16xf32>, %{{.*}}: tensor<2x16xf32>) -> tensor<2x3x16x16xf32> attributes {tc.args = array<i64: 5, 3, 4>, tc.order = 1 : i64, tc.simt}
func.func @scores(%q: tensor<2x3x16x8xf16>, %k: tensor<2x3x16x8xf16>, %scale: tensor<2x3xf32>, %mask: tensor<2x16xf32>) -> tensor<2x3x16x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x3x16x16xf32>
  %e = tensor.empty() : tensor<2x3x16x16xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, d) -> (b, h, i, d)>, affine_map<(b, h, i, j, d) -> (b, h, j, d)>, affine_map<(b, h, i, j, d) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x3x16x8xf16>, tensor<2x3x16x8xf16>) outs(%zero : tensor<2x3x16x16xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %s = arith.extf %a : f16 to f32
    %t = arith.extf %b : f16 to f32
    %u = arith.mulf %s, %t : f32
    %v = arith.addf %o, %u : f32
    linalg.yield %v : f32
  } -> tensor<2x3x16x16xf32>
  // expected-remark @+1 {{launch 1 of 2, @scores_0_matmul: linalg.generic, its epilogue arith.mulf}}
  %m = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, h)>, affine_map<(b, h, i, j) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%c, %scale : tensor<2x3x16x16xf32>, tensor<2x3xf32>) outs(%e : tensor<2x3x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x3x16x16xf32>
  // expected-remark @+1 {{launch 2 of 2, @scores_1_addf: linalg.generic on CUDA cores}}
  %y = linalg.generic {indexing_maps = [affine_map<(b, h, i, j) -> (b, h, i, j)>, affine_map<(b, h, i, j) -> (b, j)>, affine_map<(b, h, i, j) -> (b, h, i, j)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%m, %mask : tensor<2x3x16x16xf32>, tensor<2x16xf32>) outs(%e : tensor<2x3x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2x3x16x16xf32>
  return %y : tensor<2x3x16x16xf32>
}
