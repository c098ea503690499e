// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @mma(
// CHECK: "tc.mma"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {a_slice = 0 : i64, ashift = true, b_slice = 0 : i64} : (!tc.tmem<array<i64: 128, 64>, f32>, !tc.tmem<array<i64: 128, 64>, f16>, !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">, i1) -> ()
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @mma(%d: !d, %a: !a, %b: !b, %accumulate: i1) {
  "tc.mma"(%d, %a, %b, %accumulate) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @a_in_shared_memory(
// CHECK: "tc.mma"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {a_slice = 3 : i64, ashift = false, b_slice = 3 : i64} : (!tc.tmem<array<i64: 128, 256>, f32>, !tc.smem<array<i64: 128, 64>, bf16, "MN", "128B">, !tc.smem<array<i64: 256, 64>, bf16, "K", "128B">, i1) -> ()
func.func @a_in_shared_memory(%d: !tc.tmem<array<i64: 128, 256>, f32>, %a: !tc.smem<array<i64: 128, 64>, bf16, "MN", "128B">, %b: !tc.smem<array<i64: 256, 64>, bf16, "K", "128B">, %accumulate: i1) {
  "tc.mma"(%d, %a, %b, %accumulate) {a_slice = 3 : i64, ashift = false, b_slice = 3 : i64} : (!tc.tmem<array<i64: 128, 256>, f32>, !tc.smem<array<i64: 128, 64>, bf16, "MN", "128B">, !tc.smem<array<i64: 256, 64>, bf16, "K", "128B">, i1) -> ()
  return
}
