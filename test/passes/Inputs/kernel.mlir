func.func @k(%a: memref<128x64xf16>, %b: memref<16x64xf16>, %c: memref<128x16xf32>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %map_a = "tc.make_tensor_map"(%a) {mode = "tiled", dims = array<i64: 64, 128>, strides = array<i64: 128>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<128x64xf16>) -> !tc.tensor_map
  %map_b = "tc.make_tensor_map"(%b) {mode = "tiled", dims = array<i64: 64, 16>, strides = array<i64: 128>, box = array<i64: 16, 16>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<16x64xf16>) -> !tc.tensor_map
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
  scf.for %i = %c0 to %c4 step %c1 {
    %ta = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
    %tb = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
    %k = arith.muli %i, %c16 : index
    "tc.tma_load"(%map_a, %k, %c0, %ta) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">) -> ()
    "tc.tma_load"(%map_b, %k, %c0, %tb) {row = 0 : i64, nbytes = 512 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">) -> ()
    %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f16>
    %next = arith.cmpi ne, %i, %c0 : index
    "tc.cp"(%ta, %t) {slice = 0 : i64} : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.tmem<array<i64: 128, 16>, f16>) -> ()
    "tc.mma"(%d, %t, %tb, %next) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.tmem<array<i64: 128, 16>, f16>, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
  }
  %c32 = arith.constant 32 : index
  scf.for %q = %c0 to %c4 step %c1 {
    %row = arith.muli %q, %c32 : index
    %v = "tc.tmem_ld"(%d, %q, %c0) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
    "tc.store_rows"(%v, %c, %row, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf32>, memref<128x16xf32>, index, index) -> ()
  }
  return
}
