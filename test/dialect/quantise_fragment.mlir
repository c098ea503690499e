// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @quantise(
// CHECK: [[BOTH:%.*]]:2 = "tc.quantise_fragment"(%arg0) {scale_rounding = "rceil"} : (!tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">) -> (!tc.fragment<array<i64: 128, 64>, f8E5M2, "C", "mma.m16n8k16.f16">, !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">)
// CHECK: "tc.store_fragment_scales"([[BOTH]]#1, %arg1, %arg2, %arg2) {operandSegmentSizes = array<i32: 1, 1, 2>, rows = 200 : i64, scales = 7 : i64}
!c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
!q = !tc.fragment<array<i64: 128, 64>, f8E5M2, "C", "mma.m16n8k16.f16">
!s = !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">
func.func @quantise(%c: !c, %out: memref<200x7xf8E8M0FNU>, %i: index) {
  %codes, %scales = "tc.quantise_fragment"(%c) {scale_rounding = "rceil"} : (!c) -> (!q, !s)
  "tc.store_fragment_scales"(%scales, %out, %i, %i) {rows = 200 : i64, scales = 7 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (!s, memref<200x7xf8E8M0FNU>, index, index) -> ()
  return
}
