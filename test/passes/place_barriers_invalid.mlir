// Rings that barriers cannot guard.
// RUN: %tc-opt %s --split-input-file --place-barriers --verify-diagnostics

// expected-error @+1 {{expected a kernel with TMA loads in a loop, got none}}
func.func @load_outside_a_loop(%a: memref<16x16xf16>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %map = "tc.make_tensor_map"(%a) {mode = "tiled", dims = array<i64: 16, 16>, strides = array<i64: 32>, box = array<i64: 16, 16>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<16x16xf16>) -> !tc.tensor_map
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  "tc.tma_load"(%map, %c0, %c0, %t) {row = 0 : i64, nbytes = 512 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">) -> ()
  return
}

// -----

func.func @nobody_reads(%a: memref<16x16xf16>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %map = "tc.make_tensor_map"(%a) {mode = "tiled", dims = array<i64: 16, 16>, strides = array<i64: 32>, box = array<i64: 16, 16>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<16x16xf16>) -> !tc.tensor_map
  %r = "tc.smem_tile"() : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">>
  scf.for %i = %c0 to %c4 step %c1 {
    %t = "tc.slot"(%r, %i) : (!tc.ring<4 : i64, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
    // expected-error @+1 {{expected every loaded ring to be read in its loop, got no reader}}
    "tc.tma_load"(%map, %c0, %c0, %t) {row = 0 : i64, nbytes = 512 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">) -> ()
  }
  return
}

// -----

func.func @read_before_the_load(%a: memref<128x16xf16>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %map = "tc.make_tensor_map"(%a) {mode = "tiled", dims = array<i64: 16, 128>, strides = array<i64: 32>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<128x16xf16>) -> !tc.tensor_map
  %r = "tc.smem_tile"() : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
  %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f16>
  scf.for %i = %c0 to %c4 step %c1 {
    %t = "tc.slot"(%r, %i) : (!tc.ring<4 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>, index) -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
    // expected-error @+1 {{expected all loads of an iteration before their readers}}
    "tc.cp"(%t, %d) {slice = 0 : i64} : (!tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.tmem<array<i64: 128, 16>, f16>) -> ()
    "tc.tma_load"(%map, %c0, %c0, %t) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">) -> ()
  }
  return
}
