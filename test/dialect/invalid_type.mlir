// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Rules of a type are reported at the op whose operand or result has it.

func.func @legal() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  return
}

// -----

func.func @result() {
  // expected-error @+1 {{!tc.smem: element must be one of f16, bf16, f32, f8E4M3FN, f8E5M2, i8, i32, got f64: tcgen05.mma kinds f16 and tf32 read these, the block-scaled kinds read bytes, and i32 is a result that TMA stores}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f64, "K", "128B">
  return
}

// -----

!t = !tc.staged<array<i64: 24, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @operand(%x: memref<64x64xf16>, %t: !t, %i: index) {
  // expected-error @+1 {{!tc.staged: rows must be a power of two of at least 16 bytes, and so must their number, got 24 rows of 64 bytes: ldmatrix reads rows of 16 bytes, and lane addresses are XORs of their bits}}
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

func.func @of_a_ring() {
  // expected-error @+1 {{!tc.smem: swizzle must be one of "NONE", "32B", "64B", "128B", "128B_ATOM_32B", got "96B": tiles are stacks of swizzled rows}}
  %t = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "96B">>
  return
}
