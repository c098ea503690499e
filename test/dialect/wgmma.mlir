// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @group(
// CHECK: %[[D:.*]] = "tc.wgmma"({{%.*}}, {{%.*}}, {{%.*}}) {unsigned = array<i64: 1, 0>}
// CHECK: "tc.wgmma_wait"(%[[D]]) {pending = 1 : i64}
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 256, 128>, i8, "K", "128B">
!c = !tc.fragment<array<i64: 128, 256>, i32, "C", "mma.m16n8k32.b8">
func.func @group(%a: !a, %b: !b, %c: !c) {
  %d = "tc.wgmma"(%a, %b, %c) {unsigned = array<i64: 1, 0>} : (!a, !b, !c) -> !c
  %e = "tc.wgmma_wait"(%d) {pending = 1 : i64} : (!c) -> !c
  return
}

// -----

// CHECK-LABEL: func.func @partial(
// CHECK: %[[D:.*]] = "tc.wgmma_product"({{%.*}}, {{%.*}}) :
// CHECK: %[[E:.*]] = "tc.wgmma_wait"(%[[D]])
// CHECK: "tc.add_fragment"({{%.*}}, %[[E]])
!a = !tc.smem<array<i64: 128, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f8E5M2, "K", "128B">
!c = !tc.fragment<array<i64: 128, 128>, f32, "C", "mma.m16n8k32.b8">
func.func @partial(%a: !a, %b: !b, %c: !c) {
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !c
  %e = "tc.wgmma_wait"(%d) {pending = 0 : i64} : (!c) -> !c
  %f = "tc.add_fragment"(%c, %e) : (!c, !c) -> !c
  return
}
