// One CTA, three tiles of the output one after another, two k steps each.
func.func @k(%a: memref<384x32xf16>, %b: memref<16x32xf16>, %c: memref<384x16xf32>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %map_a = "tc.make_tensor_map"(%a) {mode = "tiled", dims = array<i64: 32, 384>, strides = array<i64: 64>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<384x32xf16>) -> !tc.tensor_map
  %map_b = "tc.make_tensor_map"(%b) {mode = "tiled", dims = array<i64: 32, 16>, strides = array<i64: 64>, box = array<i64: 16, 16>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<16x32xf16>) -> !tc.tensor_map
  scf.for %t = %c0 to %c3 step %c1 {
    %m0 = arith.muli %t, %c128 : index
    %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
    scf.for %i = %c0 to %c2 step %c1 {
      %ta = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %tb = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
      %k = arith.muli %i, %c16 : index
      "tc.tma_load"(%map_a, %k, %m0, %ta) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">) -> ()
      "tc.tma_load"(%map_b, %k, %c0, %tb) {row = 0 : i64, nbytes = 512 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">) -> ()
      %next = arith.cmpi ne, %i, %c0 : index
      "tc.mma"(%d, %ta, %tb, %next) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
    }
    scf.for %q = %c0 to %c4 step %c1 {
      %first = arith.muli %q, %c32 : index
      %row = arith.addi %m0, %first : index
      %v = "tc.tmem_ld"(%d, %q, %c0) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      "tc.store_rows"(%v, %c, %row, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf32>, memref<384x16xf32>, index, index) -> ()
    }
  }
  return
}
