// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @store(
// CHECK: "tc.store_shared"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) : (vector<32x16xf16>, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">, index, index) -> ()
// CHECK: "tc.warp_barrier"() : () -> ()
// CHECK: "tc.tma_store"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {operandSegmentSizes = array<i32: 1, 2, 1>, reduction = "add", row = 0 : i64} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">) -> ()
// CHECK: "tc.bulk_commit"() : () -> ()
// CHECK: "tc.bulk_wait"() {pending = 1 : i64, read = true} : () -> ()
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @store(%v: vector<32x16xf16>, %out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.store_shared"(%v, %tile, %i, %i) : (vector<32x16xf16>, !tile, index, index) -> ()
  "tc.warp_barrier"() : () -> ()
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64, reduction = "add",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  "tc.bulk_commit"() : () -> ()
  "tc.bulk_wait"() {pending = 1 : i64, read = true} : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @load(
// CHECK: "tc.load_shared"({{%.*}}, {{%.*}}, {{%.*}}) : (!tc.smem<array<i64: 128, 64>, f16, "K", "128B">, index, index) -> vector<32x16xf16>
func.func @load(%tile: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, %i: index) {
  %v = "tc.load_shared"(%tile, %i, %i)
      : (!tc.smem<array<i64: 128, 64>, f16, "K", "128B">, index, index) -> vector<32x16xf16>
  return
}
