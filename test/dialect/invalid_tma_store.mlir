// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.tma_store/map
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/map
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%map: !tc.tensor_map, %tile: !tile, %i: index) {
  // expected-error @+1 {{tc.tma_store: map must be the result of a tc.make_tensor_map of the same function, got BlockArgument(<block argument> of type '!tc.tensor_map' at index: 0)}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64, operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/mode
!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%out: memref<1x56x56x64xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1, 1, 1>,
      corners = array<i64: 0, 0, 0, 0>, swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 4, 1>} : (!tc.tensor_map, index, index, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/mode
!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%out: memref<1x56x56x64xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "im2col_w128", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1, 1, 1>,
      corners = array<i64: 0, 0>, swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: a store needs a map of mode "tiled" or "im2col", got "im2col_w128": the w modes load only}}
  "tc.tma_store"(%map, %i, %i, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 4, 1>} : (!tc.tensor_map, index, index, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/corners
!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%out: memref<1x56x56x64xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1, 1, 1>,
      corners = array<i64: 0, 0, -1, -2>, swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 4, 1>} : (!tc.tensor_map, index, index, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/corners
!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%out: memref<1x56x56x64xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "im2col", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1, 1, 1>,
      corners = array<i64: -1, 0, 0, 0>, swizzle = "128B"} : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: the bounding box of an im2col store must lie in the tensor (lower corners >= 0, upper corners <= 0), got [-1, 0, 0, 0]: stores do not pad}}
  "tc.tma_store"(%map, %i, %i, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 4, 1>} : (!tc.tensor_map, index, index, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/coords
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 1>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %i, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 5, 1>} : (!tc.tensor_map, index, index, index, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/coords
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: expected one coordinate per dimension of the map (2), or, of a map of two dimensions with a box of one row, a column and four rows, got 5}}
  "tc.tma_store"(%map, %i, %i, %i, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 5, 1>} : (!tc.tensor_map, index, index, index, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/negative
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %c = arith.constant 0 : index
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %c, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/negative
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %c = arith.constant -1 : index
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: coordinates must not be negative, got -1: a box to store begins inside the tensor}}
  "tc.tma_store"(%map, %i, %c, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/dtype
!tile = !tc.smem<array<i64: 32, 128>, i8, "K", "128B">
func.func @f(%out: memref<128x128xi8>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 128, 128>,
      strides = array<i64: 128>, box = array<i64: 128, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B", dtype = "u8"} : (memref<128x128xi8>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/dtype
!tile = !tc.smem<array<i64: 32, 128>, i8, "K", "128B">
func.func @f(%out: memref<128x64xi8>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 128, 128>,
      strides = array<i64: 64>, box = array<i64: 128, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B", dtype = "u4_align16b"} : (memref<128x64xi8>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: a store cannot have dtype "u4_align16b": the type is for loads}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/element
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/element
!tile = !tc.smem<array<i64: 32, 64>, bf16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: map and tile must have the same element type, got f16 and bf16: TMA does not convert; convert with arith.truncf first}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/reduction
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64, reduction = "max",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/reduction
!tile = !tc.smem<array<i64: 32, 32>, f32, "K", "128B">
func.func @f(%out: memref<128x256xf32>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 1024>, box = array<i64: 32, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf32>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: reduction must be one of add for elements of f32, got "max"}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64, reduction = "max",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/scattered-reduction
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 1>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64, reduction = "add",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/scattered-reduction
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 1>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: a reduction has one coordinate per dimension, got four rows: tile::scatter4 only stores}}
  "tc.tma_store"(%map, %i, %i, %i, %i, %i, %tile) {row = 0 : i64, reduction = "add",
      operandSegmentSizes = array<i32: 1, 5, 1>} : (!tc.tensor_map, index, index, index, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/swizzle
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "64B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 32, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "64B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/swizzle
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "64B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 32, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: map and tile must have the same swizzle, got 128B and 64B: the elements would be stored in another order}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/row-bytes
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/row-bytes
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 32, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: the box's innermost extent must fill a row of the tile (128 bytes; without a swizzle and with k of one row: several), got 64: a shorter one is packed, and its rows would not be the tile's}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/row-atom
!tile = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 24 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/row-atom
!tile = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: row must be a multiple of 8, got 20: a swizzled box starts at a whole swizzle atom}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 20 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.tma_store/rows
!tile = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  "tc.tma_store"(%map, %i, %i, %tile) {row = 32 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// illegal: tc.tma_store/rows
!tile = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>, %tile: !tile, %i: index) {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  // expected-error @+1 {{tc.tma_store: the box must lie within the tile's rows [0, 64), got [40, 72)}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 40 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.bulk_wait/pending
func.func @f() {
  "tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()
  return
}

// -----

// illegal: tc.bulk_wait/pending
func.func @f() {
  // expected-error @+1 {{tc.bulk_wait: pending must be at least 0, got -1: so many of the last groups may be under way}}
  "tc.bulk_wait"() {pending = -1 : i64, read = true} : () -> ()
  return
}

// -----

// legal: tc.bulk_wait/read-type
func.func @f() {
  "tc.bulk_wait"() {pending = 2 : i64, read = false} : () -> ()
  return
}

// -----

// illegal: tc.bulk_wait/read-type
func.func @f() {
  // expected-error @+1 {{tc.bulk_wait: read must be true or false, got 1 : i64}}
  "tc.bulk_wait"() {pending = 2 : i64, read = 1 : i64} : () -> ()
  return
}

// -----

// legal: tc.store_shared/value
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x16xf16>, %tile: !tile, %i: index) {
  "tc.store_shared"(%v, %tile, %i, %i) : (vector<32x16xf16>, !tile, index, index) -> ()
  return
}

// -----

// illegal: tc.store_shared/value
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x16xf32>, %tile: !tile, %i: index) {
  // expected-error @+1 {{tc.store_shared: value must be vector<32 x columns x f16> (one row per thread of a warp, elements of the tile), got vector<32x16xf32>}}
  "tc.store_shared"(%v, %tile, %i, %i) : (vector<32x16xf32>, !tile, index, index) -> ()
  return
}

// -----

// legal: tc.store_shared/width
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x8xf16>, %tile: !tile, %i: index) {
  "tc.store_shared"(%v, %tile, %i, %i) : (vector<32x8xf16>, !tile, index, index) -> ()
  return
}

// -----

// illegal: tc.store_shared/width
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x24xf16>, %tile: !tile, %i: index) {
  // expected-error @+1 {{tc.store_shared: a row must be a multiple of 16 bytes that divides 128 (a row of the tile) or is a multiple of it, got 48: a swizzle moves 16 bytes as a whole}}
  "tc.store_shared"(%v, %tile, %i, %i) : (vector<32x24xf16>, !tile, index, index) -> ()
  return
}

// -----

// legal: tc.store_shared/major
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x16xf16>, %tile: !tile, %i: index) {
  "tc.store_shared"(%v, %tile, %i, %i) : (vector<32x16xf16>, !tile, index, index) -> ()
  return
}

// -----

// illegal: tc.store_shared/major
!tile = !tc.smem<array<i64: 64, 32>, f16, "MN", "128B">
func.func @f(%v: vector<32x16xf16>, %tile: !tile, %i: index) {
  // expected-error @+1 {{tc.store_shared: the tile must be K-major, got "MN": a thread has a row, and accesses it as one}}
  "tc.store_shared"(%v, %tile, %i, %i) : (vector<32x16xf16>, !tile, index, index) -> ()
  return
}

// -----

// legal: tc.store_shared/rows
!tile = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x16xf16>, %tile: !tile, %i: index) {
  %c = arith.constant 32 : index
  "tc.store_shared"(%v, %tile, %c, %i) : (vector<32x16xf16>, !tile, index, index) -> ()
  return
}

// -----

// illegal: tc.store_shared/rows
!tile = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x16xf16>, %tile: !tile, %i: index) {
  %c = arith.constant 40 : index
  // expected-error @+1 {{tc.store_shared: the 32 rows must lie in the tile's 64, got [40, 72)}}
  "tc.store_shared"(%v, %tile, %c, %i) : (vector<32x16xf16>, !tile, index, index) -> ()
  return
}

// -----

// legal: tc.store_shared/columns
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x16xf16>, %tile: !tile, %i: index) {
  %c = arith.constant 48 : index
  "tc.store_shared"(%v, %tile, %i, %c) : (vector<32x16xf16>, !tile, index, index) -> ()
  return
}

// -----

// illegal: tc.store_shared/columns
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%v: vector<32x16xf16>, %tile: !tile, %i: index) {
  %c = arith.constant 8 : index
  // expected-error @+1 {{tc.store_shared: the columns must lie in the tile's 64 and begin at a multiple of 16, got [8, 24)}}
  "tc.store_shared"(%v, %tile, %i, %c) : (vector<32x16xf16>, !tile, index, index) -> ()
  return
}
