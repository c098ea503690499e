func.func @k() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %d0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 256>, f32>
  %a0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 64>, f16>
  %a1 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 64>, f16>
  %d1 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 256>, f32>
  "tc.cta_barrier"() : () -> ()
  "tc.cta_barrier"() : () -> ()
  return
}
