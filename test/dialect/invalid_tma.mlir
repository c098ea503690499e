// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.make_tensor_map/tensor
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/tensor
func.func @f(%x: memref<1x56x56x64xf16, strided<[200704, 3584, 64, 1], offset: 64>>) {
  // expected-error @+1 {{tc.make_tensor_map: tensor must be a static, contiguous memref of f16, bf16, f32, i32, i8, f8E4M3FN, f8E5M2, f8E8M0FNU, got memref<1x56x56x64xf16, strided<[200704, 3584, 64, 1], offset: 64>>}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16, strided<[200704, 3584, 64, 1], offset: 64>>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/attributes
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/attributes
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: dims, strides, box, element_strides and corners must be array<i64>, got box = [64, 32, 1, 1]}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = [64, 32, 1, 1],
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/mode
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1, -1, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/mode
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: mode must be one of "tiled", "im2col", "im2col_w", "im2col_w128", got "im2col_h"}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_h", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/rank
func.func @f(%x: memref<64x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 64>,
      strides = array<i64: 128>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<64x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/rank
func.func @f(%x: memref<64x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: a map of mode im2col must have a number of dims in [3, 5], got 2}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 64>,
      strides = array<i64: 128>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<64x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/lengths
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1, -1, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/lengths
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: a map of mode im2col and rank 4 needs 3 strides, 2 box, 4 element_strides, 4 corners, got 2 in corners}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/dims
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/dims
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: dims must be in [1, 4294967296], got 0; nearest legal: 1}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 0>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/strides
func.func @f(%x: memref<4x24xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 24, 4>,
      strides = array<i64: 48>, box = array<i64: 16, 4>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<4x24xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/strides
func.func @f(%x: memref<4x20xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: strides must be a multiple of 16 in [16, 1099511627760] bytes, got 40: TMA addresses global memory in units of 16 bytes; pad the rows of the tensor; nearest legal: 32 or 48}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 20, 4>,
      strides = array<i64: 40>, box = array<i64: 16, 4>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<4x20xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/box
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 256, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/box
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: box extents must be in [1, 256], got 257; load several boxes; nearest legal: 256}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 257, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/im2col-box
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 1024>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1, -1, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/im2col-box
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: im2col box must be [channels per pixel in [1, 256], pixels per column in [1, 1024]], got [64, 1025]}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 1025>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1, -1, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/swizzle
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 32, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "64B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/swizzle
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: swizzle must be one of "NONE", "32B", "64B", "128B", "128B_ATOM_32B", got "16B"}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 8, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "16B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/evict
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>, evict = "last",
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/evict
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: evict must be one of "first", "last", got "normal"; leave it out for the priority of others}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>, evict = "normal",
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/inner-box
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/inner-box
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: box[0] must be a multiple of 16 bytes and at most 128 (the span of swizzle 128B), got 144 bytes; load several boxes, or take a wider swizzle}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 72, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/element-strides
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 8, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/element-strides
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: element_strides must be in [1, 8], got 9; nearest legal: 8}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 9, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/corners
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -128, -1, 127, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/corners
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: corners of a rank 4 map must be in [-128, 127], got -129: the descriptor has so few bits for them; nearest legal: -128}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -129, -1, 127, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/bounding-box
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: 0, 0, -55, 0>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/bounding-box
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: the im2col bounding box must not be empty, got [0, -1] in dimension 1 of 56: it runs from the lower corner to extent - 1 + upper corner}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: 0, 0, -56, 0>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.make_tensor_map/in-tensor
func.func @f(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/in-tensor
func.func @f(%x: memref<1x56x56x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: the map must stay within the tensor's 401408 bytes, got 408576: TMA checks coordinates against dims only}}
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 57, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}

// -----

// legal: tc.tma_load/map
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/map
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%map: !tc.tensor_map, %i: index, %off: index, %t: !t) {
  // expected-error @+1 {{tc.tma_load: map must be the result of a tc.make_tensor_map of the same function, got BlockArgument(<block argument> of type '!tc.tensor_map' at index: 0)}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/coords
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/coords
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: expected one coordinate per dimension of the map (4), or, of a map of two dimensions with a box of one row, a column and four rows, got 3}}
  "tc.tma_load"(%map, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 3, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/offsets
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1, -1, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %off, %off, %t) {row = 0 : i64, nbytes = 16384 : i64,
      operandSegmentSizes = array<i32: 1, 4, 2, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/offsets
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: expected 0 offsets for a map of mode tiled and rank 4 (im2col: one per spatial dimension; the w modes: that of the width; tiled: none), got 2}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %off, %off, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 2, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/offset-range
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1, -1, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %c255 = arith.constant 255 : index
  "tc.tma_load"(%map, %i, %i, %i, %i, %c255, %c255, %t) {row = 0 : i64, nbytes = 16384 : i64,
      operandSegmentSizes = array<i32: 1, 4, 2, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/offset-range
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1, -1, -1>,
      swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %c256 = arith.constant 256 : index
  // expected-error @+1 {{tc.tma_load: im2col offsets of a rank 4 map must be in [0, 255], got 256: the instruction has so few bits for them}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %c256, %c256, %t) {row = 0 : i64, nbytes = 16384 : i64,
      operandSegmentSizes = array<i32: 1, 4, 2, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/element
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/element
!t = !tc.smem<array<i64: 128, 64>, bf16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: map and tile must have the same element type, got f16 and bf16: TMA does not convert}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/swizzle
!t = !tc.smem<array<i64: 128, 32>, f16, "K", "64B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 32, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "64B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 2048 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/swizzle
!t = !tc.smem<array<i64: 128, 32>, f16, "K", "64B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 32, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: map and tile must have the same swizzle, got 128B and 64B: the tensor core would read permuted elements}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 2048 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/row-bytes
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/row-bytes
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 32, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: the box's innermost extent must fill a row of the tile (128 bytes; without a swizzle and with k of one row: several), got 64: a shorter one is packed, and its rows would not be the tile's}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 2048 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/nbytes
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 2, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 2048 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/nbytes
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 2, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: nbytes must be the bytes of the whole box (2048), got 4096: complete_tx counts the out-of-bounds part too, and not the gaps of padded types}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/row-atom
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 8 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/row-atom
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: row must be a multiple of 8, got 12: the destination of a swizzled box starts at a whole swizzle atom}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 12 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/rows
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 96 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/rows
!t = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %i: index, %off: index, %t: !t) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: the box must lie within the tile's rows [0, 128), got [104, 136)}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %t) {row = 104 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/halo
!t = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
func.func @f(%x: memref<2x9x9x64xf16>, %t: !t, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_w128", dims = array<i64: 64, 9, 9, 2>,
      strides = array<i64: 128, 1152, 10368>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, 1>, swizzle = "128B"}
      : (memref<2x9x9x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 17408 : i64, halo = 2 : i64,
      operandSegmentSizes = array<i32: 1, 4, 1, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/halo
!t = !tc.smem<array<i64: 256, 64>, f16, "K", "128B">
func.func @f(%x: memref<2x9x9x64xf16>, %t: !t, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_w128", dims = array<i64: 64, 9, 9, 2>,
      strides = array<i64: 128, 1152, 10368>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, 1>, swizzle = "128B"}
      : (memref<2x9x9x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: halo must be in [0, 31] of a map of mode im2col_w128 (tiled and im2col have none), got 32 of mode im2col_w128}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 32768 : i64, halo = 32 : i64,
      operandSegmentSizes = array<i32: 1, 4, 1, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, !t) -> ()
  return
}

// -----

// legal: tc.tma_load/halo
!t = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%x: memref<2x9x9x64xf16>, %t: !t, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_w", dims = array<i64: 64, 9, 9, 2>,
      strides = array<i64: 128, 1152, 10368>, box = array<i64: 64, 14>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, 1>, swizzle = "128B"}
      : (memref<2x9x9x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 4096 : i64, halo = 18 : i64,
      operandSegmentSizes = array<i32: 1, 4, 1, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.tma_load/halo
!t = !tc.smem<array<i64: 528, 64>, f16, "K", "128B">
func.func @f(%x: memref<2x9x9x64xf16>, %t: !t, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_w", dims = array<i64: 64, 9, 9, 2>,
      strides = array<i64: 128, 1152, 10368>, box = array<i64: 64, 16>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, 1>, swizzle = "128B"}
      : (memref<2x9x9x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_load: halo must be in [0, 511] of a map of mode im2col_w (tiled and im2col have none), got 512 of mode im2col_w}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %i, %t) {row = 0 : i64, nbytes = 67584 : i64, halo = 512 : i64,
      operandSegmentSizes = array<i32: 1, 4, 1, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.make_tensor_map/swizzle
func.func @f(%x: memref<2x9x9x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: swizzle must be one of "64B", "128B", got "32B"}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_w128", dims = array<i64: 64, 9, 9, 2>,
      strides = array<i64: 128, 1152, 10368>, box = array<i64: 16, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, 1>, swizzle = "32B"}
      : (memref<2x9x9x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/im2col-box
func.func @f(%x: memref<2x9x9x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: im2col_w128 box must be [channels per pixel in [1, 256], pixels per column 128], got [64, 64]}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_w128", dims = array<i64: 64, 9, 9, 2>,
      strides = array<i64: 128, 1152, 10368>, box = array<i64: 64, 64>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, 1>, swizzle = "128B"}
      : (memref<2x9x9x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.make_tensor_map/lengths
func.func @f(%x: memref<2x9x9x64xf16>) {
  // expected-error @+1 {{tc.make_tensor_map: a map of mode im2col_w128 and rank 4 needs 3 strides, 2 box, 4 element_strides, 2 corners, got 4 in corners}}
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_w128", dims = array<i64: 64, 9, 9, 2>,
      strides = array<i64: 128, 1152, 10368>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, -1, 1, 1>,
      swizzle = "128B"} : (memref<2x9x9x64xf16>) -> !tc.tensor_map
  return
}

// -----

// illegal: tc.tma_load/offset-range
!t = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
func.func @f(%x: memref<2x9x9x64xf16>, %t: !t, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "im2col_w128", dims = array<i64: 64, 9, 9, 2>,
      strides = array<i64: 128, 1152, 10368>, box = array<i64: 64, 128>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64: -1, 1>, swizzle = "128B"}
      : (memref<2x9x9x64xf16>) -> !tc.tensor_map
  %c32 = arith.constant 32 : index
  // expected-error @+1 {{tc.tma_load: im2col offsets of a rank 4 map must be in [0, 31], got 32: the instruction has so few bits for them}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %c32, %t) {row = 0 : i64, nbytes = 17408 : i64,
      halo = 2 : i64, operandSegmentSizes = array<i32: 1, 4, 1, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, index, !t) -> ()
  return
}
