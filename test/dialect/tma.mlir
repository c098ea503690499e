// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @make_tensor_map(
// CHECK: "tc.make_tensor_map"({{%.*}}) {box = array<i64: 64, 32, 1, 1>, corners = array<i64>, dims = array<i64: 64, 56, 56, 1>, element_strides = array<i64: 1, 1, 1, 1>, mode = "tiled", strides = array<i64: 128, 7168, 401408>, swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
func.func @make_tensor_map(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// CHECK-LABEL: func.func @tma_load(
// CHECK: "tc.make_tensor_map"({{%.*}}) {box = array<i64: 64, 32, 1, 1>, corners = array<i64>, dims = array<i64: 64, 56, 56, 1>, element_strides = array<i64: 1, 1, 1, 1>, mode = "tiled", strides = array<i64: 128, 7168, 401408>, swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
// CHECK: "tc.tma_load"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>, row = 96 : i64} : (!tc.tensor_map, index, index, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @tma_load(%x: memref<1x56x56x64xf16>, %tile: !tile, %full: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %tile, %full) {row = 96 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>}
      : (!tc.tensor_map, index, index, index, index, !tile, !tc.mbarrier) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @im2col(
// CHECK: "tc.make_tensor_map"({{%.*}}) {box = array<i64: 64, 128>, corners = array<i64: -1, -1, -1, -1>, dims = array<i64: 64, 56, 56, 2>, element_strides = array<i64: 1, 2, 2, 1>, mode = "im2col", strides = array<i64: 128, 7168, 401408>, swizzle = "128B"} : (memref<2x56x56x64xbf16>) -> !tc.tensor_map
// CHECK: "tc.tma_load"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 0>, row = 0 : i64} : (!tc.tensor_map, index, index, index, index, index, index, !tc.smem<array<i64: 128, 64>, bf16, "K", "128B">) -> ()
func.func @im2col(%x: memref<2x56x56x64xbf16>, %tile: !tc.smem<array<i64: 128, 64>, bf16, "K", "128B">, %i: index) {
  %map = "tc.make_tensor_map"(%x) {box = array<i64: 64, 128>, corners = array<i64: -1, -1, -1, -1>, dims = array<i64: 64, 56, 56, 2>, element_strides = array<i64: 1, 2, 2, 1>, mode = "im2col", strides = array<i64: 128, 7168, 401408>, swizzle = "128B"} : (memref<2x56x56x64xbf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %i, %i, %tile) {nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 0>, row = 0 : i64} : (!tc.tensor_map, index, index, index, index, index, index, !tc.smem<array<i64: 128, 64>, bf16, "K", "128B">) -> ()
  return
}
