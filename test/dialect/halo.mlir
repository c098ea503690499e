// RUN: %tc-opt %s | %filecheck %s

// CHECK-LABEL: func.func @halo(
// CHECK: "tc.shift"({{%.*}}) {quarter = 2 : i64, slice = 3 : i64} : (!tc.tmem<array<i64: 128, 64>, f16>) -> ()
// CHECK: "tc.refresh"({{%.*}}, {{%.*}}) {row = 8 : i64, slice = 3 : i64}
func.func @halo(%h: !tc.smem<array<i64: 16, 64>, f16, "K", "128B">, %t: !tc.tmem<array<i64: 128, 64>, f16>) {
  "tc.shift"(%t) {slice = 3 : i64, quarter = 2 : i64} : (!tc.tmem<array<i64: 128, 64>, f16>) -> ()
  "tc.refresh"(%h, %t) {slice = 3 : i64, row = 8 : i64} : (!tc.smem<array<i64: 16, 64>, f16, "K", "128B">, !tc.tmem<array<i64: 128, 64>, f16>) -> ()
  return
}
