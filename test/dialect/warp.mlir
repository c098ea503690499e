// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @cp_async(
// CHECK: "tc.cp_async"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {operandSegmentSizes = array<i32: 1, 2, 1>, tails = "outer", width = 16 : i64}
// CHECK: "tc.cp_async_commit"() : () -> ()
// CHECK: "tc.cp_async_wait"() {pending = 2 : i64} : () -> ()
!tile = !tc.staged<array<i64: 128, 64>, f16, "K", array<i64: 3, 4, 3>>
func.func @cp_async(%x: memref<100x64xf16>, %i: index, %tile: !tile) {
  "tc.cp_async"(%x, %i, %i, %tile) {width = 16 : i64, tails = "outer", operandSegmentSizes = array<i32: 1, 2, 1>}
      : (memref<100x64xf16>, index, index, !tile) -> ()
  "tc.cp_async_commit"() : () -> ()
  "tc.cp_async_wait"() {pending = 2 : i64} : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @fragments(
// CHECK: "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
// CHECK: "tc.load_fragment"({{%.*}}) {k = 48 : i64, via = "ldmatrix"}
// CHECK: "tc.load_fragment"({{%.*}}) {k = 48 : i64, via = "ldmatrix.trans"}
// CHECK: "tc.mma_sync"({{%.*}}, {{%.*}}, {{%.*}})
// CHECK: "tc.store_fragment"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {operandSegmentSizes = array<i32: 1, 1, 2>, tails = ""}
!ta = !tc.staged<array<i64: 128, 64>, f16, "K", array<i64: 3, 4, 3>>
!tb = !tc.staged<array<i64: 64, 64>, f16, "MN", array<i64: 3, 4, 3>>
!a = !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 64, 16>, f16, "B", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
func.func @fragments(%ta: !ta, %tb: !tb, %out: memref<128x64xbf16>, %i: index) {
  %zero = "tc.zero_fragment"() : () -> !c
  %a = "tc.load_fragment"(%ta) {k = 48 : i64, via = "ldmatrix"} : (!ta) -> !a
  %b = "tc.load_fragment"(%tb) {k = 48 : i64, via = "ldmatrix.trans"} : (!tb) -> !b
  %d = "tc.mma_sync"(%a, %b, %zero) : (!a, !b, !c) -> !c
  "tc.store_fragment"(%d, %out, %i, %i) {tails = "", operandSegmentSizes = array<i32: 1, 1, 2>}
      : (!c, memref<128x64xbf16>, index, index) -> ()
  return
}
