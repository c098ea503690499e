// RUN: %tc-opt %s --target=sm_90a --raise-to-tc --split-launches --tile-gemm="{n-tile=64 persistent=true ctas=1}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --defer-stores --wait-ahead | %filecheck %s

// In the first step of a tile nothing is added to: both it and the tile before, which is stored, have registers.
// CHECK: kind = "producer"
// CHECK: [[ZERO:%.*]] = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 128, 64>, f32
// CHECK: "tc.wgmma_product"
// CHECK: scf.if
// CHECK: "tc.store_fragment"
// CHECK: "tc.store_fragment"
// CHECK: [[PART:%.*]] = "tc.wgmma_wait"
// CHECK: [[SUM:%.*]] = "tc.add_fragment"([[ZERO]], [[PART]])

// The second step's tiles are waited for in front of the loop, later ones in the step before, which the last one is not.
// CHECK: [[SLOT:%.*]] = arith.remui
// CHECK: "tc.mbarrier_wait"
// CHECK: scf.while ([[C:%.*]] = [[SUM]], [[AT:%.*]] = [[SLOT]], [[NEXT:%.*]] = {{%.*}})
// CHECK: "tc.slot"({{%.*}}, [[AT]])
// CHECK-NOT: tc.mbarrier_wait
// CHECK: [[PARTIAL:%.*]] = "tc.wgmma_product"
// CHECK: [[MORE:%.*]] = arith.cmpi ult, [[NEXT]], %c4
// CHECK: [[THEN:%.*]] = scf.if [[MORE]]
// CHECK: arith.addi {{%.*}}, [[NEXT]]
// CHECK: [[FOUND:%.*]] = arith.remui
// CHECK: "tc.mbarrier_wait"
// CHECK: scf.yield [[FOUND]]
// CHECK: else
// CHECK: scf.yield [[AT]]
// CHECK: "tc.wgmma_wait"([[PARTIAL]])
// CHECK: "tc.mbarrier_arrive"
// CHECK: [[TOTAL:%.*]] = "tc.add_fragment"([[C]],
// CHECK: [[AFTER:%.*]] = arith.addi [[NEXT]], %c1
// CHECK: scf.condition([[MORE]]) [[TOTAL]], [[THEN]], [[AFTER]]
func.func @product(%a: tensor<128x512xf8E4M3FN>, %b: tensor<128x512xf8E4M3FN>) -> tensor<128x128xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x128xf32>) -> tensor<128x128xf32>
  %c = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : tensor<128x512xf8E4M3FN>, tensor<128x512xf8E4M3FN>)
      outs(%init : tensor<128x128xf32>) -> tensor<128x128xf32>
  %d = arith.truncf %c : tensor<128x128xf32> to tensor<128x128xf16>
  return %d : tensor<128x128xf16>
}
