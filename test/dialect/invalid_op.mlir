// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Rules of an op are reported at the op; the first broken one is.

!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @legal(%d: !d, %a: !a, %b: !b, %acc: i1) {
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

!d = !tc.tmem<array<i64: 128, 20>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 20, 64>, f16, "MN", "128B">
func.func @value_and_nearest(%d: !d, %a: !a, %b: !b, %acc: i1) {
  // expected-error @+1 {{tc.mma: N must be a multiple of 8 in [8, 256] for M = 128, cta_group::1, got 20: the instruction descriptor holds N/8 and the tensor core takes no other N; nearest legal: 16 or 24}}
  "tc.mma"(%d, %a, %b, %acc) {a_slice = 9 : i64, b_slice = 9 : i64, ashift = false}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

func.func @attribute(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: mode must be one of "tiled", "im2col", "im2col_w", "im2col_w128", got "im2col_h"}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_h", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

func.func @undeclared() {
  // expected-error @+1 {{tc: tc.tmem_tile needs operandSegmentSizes = array<i32: ...>, one size for each of base, for 0 operands in all, got none}}
  %t = "tc.tmem_tile"() : () -> !tc.tmem<array<i64: 128, 64>, f16>
  return
}
