// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @cp(
// CHECK: "tc.cp"({{%.*}}, {{%.*}}) {slice = 3 : i64} : (!tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.tmem<array<i64: 128, 64>, f16>) -> ()
!source = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!target = !tc.tmem<array<i64: 128, 64>, f16>
func.func @cp(%source: !source, %target: !target) {
  "tc.cp"(%source, %target) {slice = 3 : i64} : (!source, !target) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @tmem_ld(
// CHECK: "tc.tmem_ld"({{%.*}}, {{%.*}}, {{%.*}}) : (!tc.tmem<array<i64: 128, 64>, f32>, index, index) -> vector<32x16xf32>
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @tmem_ld(%d: !d, %quarter: index, %column: index) {
  %v = "tc.tmem_ld"(%d, %quarter, %column) : (!d, index, index) -> vector<32x16xf32>
  return
}

// -----

// CHECK-LABEL: func.func @tmem_wait(
// CHECK: "tc.tmem_wait"() {kind = "ld"} : () -> ()
func.func @tmem_wait() {
  "tc.tmem_wait"() {kind = "ld"} : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @store_rows(
// CHECK: "tc.store_rows"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {operandSegmentSizes = array<i32: 1, 1, 4>, row_dim = 2 : i64, rows = 30 : i64} : (vector<32x16xf32>, memref<1x56x56x64xf32>, index, index, index, index) -> ()
!out = memref<1x56x56x64xf32>
func.func @store_rows(%v: vector<32x16xf32>, %out: !out, %n: index, %p: index, %q: index, %k: index) {
  "tc.store_rows"(%v, %out, %n, %p, %q, %k) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf32>, !out, index, index, index, index) -> ()
  return
}
