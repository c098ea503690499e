// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @smem_tile(
// CHECK: "tc.smem_tile"() {offset = 1024 : i64} : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
func.func @smem_tile() {
  %ring = "tc.smem_tile"() {offset = 1024 : i64}
      : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  return
}

// -----

// CHECK-LABEL: func.func @tmem_tile(
// CHECK: "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
// CHECK: "tc.tmem_tile"({{%.*}}) {column = 0 : i64, operandSegmentSizes = array<i32: 1>} : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
func.func @tmem_tile() {
  %base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}

// -----

// CHECK-LABEL: func.func @tmem_alloc(
// CHECK: "tc.tmem_alloc"() {address_slot = 0 : i64, columns = 128 : i64, warp = 5 : i64} : () -> !tc.tmem_base
func.func @tmem_alloc() {
  %base = "tc.tmem_alloc"() {columns = 128 : i64, address_slot = 0 : i64, warp = 5 : i64}
      : () -> !tc.tmem_base
  return
}

// -----

// CHECK-LABEL: func.func @tmem_relinquish(
// CHECK: "tc.tmem_relinquish"() : () -> ()
func.func @tmem_relinquish() {
  "tc.tmem_relinquish"() : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @tmem_dealloc(
// CHECK: "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
// CHECK: "tc.tmem_dealloc"({{%.*}}) {columns = 128 : i64} : (!tc.tmem_base) -> ()
func.func @tmem_dealloc() {
  %base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base) {columns = 128 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @mbarrier_init(
// CHECK: "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 8 : i64} : () -> !tc.ring<4 : i64, !tc.mbarrier>
func.func @mbarrier_init() {
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 8 : i64}
      : () -> !tc.ring<4 : i64, !tc.mbarrier>
  return
}

// -----

// CHECK-LABEL: func.func @slot(
// CHECK: "tc.slot"({{%.*}}, {{%.*}}) : (!tc.ring<4 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
func.func @slot(%full: !tc.ring<4 : i64, !tc.mbarrier>, %i: index) {
  %bar = "tc.slot"(%full, %i) : (!tc.ring<4 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
  return
}

// -----

// CHECK-LABEL: func.func @unplanned_tiles(
// CHECK: "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 32>, bf16, "K", "64B">
// CHECK: "tc.smem_tile"() : () -> !tc.smem<array<i64: 64, 16>, f16, "MN", "32B">
// CHECK: "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 256>, f32>
// CHECK: "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 64>, bf16>>
func.func @unplanned_tiles() {
  %a = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 32>, bf16, "K", "64B">
  %b = "tc.smem_tile"() : () -> !tc.smem<array<i64: 64, 16>, f16, "MN", "32B">
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 256>, f32>
  %r = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 64>, bf16>>
  return
}
