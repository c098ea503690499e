// RUN: %tc-opt %s --split-input-file --verify-diagnostics

// legal: tc.lane_index/result
func.func @f() {
  %l = "tc.lane_index"() : () -> vector<32xindex>
  return
}

// -----

// illegal: tc.lane_index/result
func.func @f() {
  // expected-error @+1 {{tc.lane_index: the result must be vector<32xindex>, got vector<16xindex>: a warp has 32 lanes}}
  %l = "tc.lane_index"() : () -> vector<16xindex>
  return
}

// -----

// legal: tc.store_lanes/value
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>}
      : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// illegal: tc.store_lanes/value
func.func @f(%v: vector<16x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  // expected-error @+1 {{tc.store_lanes: value must be vector<32 x columns x element> (one row per thread of a warp), got vector<16x16xf32>}}
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>}
      : (vector<16x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// legal: tc.store_lanes/tensor
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>}
      : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// illegal: tc.store_lanes/tensor
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32, strided<[4096, 64, 1]>>,
             %n: vector<32xindex>, %k: index) {
  // expected-error @+1 {{tc.store_lanes: tensor must be a static, contiguous memref of rank >= 2, got memref<4x56x64xf32, strided<[4096, 64, 1]>>: rows are clipped against its extents}}
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>}
      : (vector<32x16xf32>, memref<4x56x64xf32, strided<[4096, 64, 1]>>, vector<32xindex>,
        vector<32xindex>, index) -> ()
  return
}

// -----

// legal: tc.store_lanes/element
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>}
      : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// illegal: tc.store_lanes/element
func.func @f(%v: vector<32x16xf16>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  // expected-error @+1 {{tc.store_lanes: value and tensor must have the same element type, got f16 and f32; convert with arith.truncf first}}
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>}
      : (vector<32x16xf16>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// legal: tc.store_lanes/places
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>}
      : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// illegal: tc.store_lanes/places
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  // expected-error @+1 {{tc.store_lanes: expected one vector<32xindex> per dimension of the tensor but the last (2), got vector<32xindex>}}
  "tc.store_lanes"(%v, %out, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 1, 1>}
      : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, index) -> ()
  return
}

// -----

// legal: tc.lane_masks/count
func.func @f() {
  %m = "tc.lane_masks"() {count = 9 : i64} : () -> !tc.lane_mask_table
  return
}

// -----

// illegal: tc.lane_masks/count
func.func @f() {
  // expected-error @+1 {{tc.lane_masks: count must be at least 1, got 0: a table without an entry masks nothing}}
  %m = "tc.lane_masks"() {count = 0 : i64} : () -> !tc.lane_mask_table
  return
}

// -----

// legal: tc.lane_masks/offset
func.func @f() {
  %m = "tc.lane_masks"() {count = 9 : i64, offset = 1040 : i64} : () -> !tc.lane_mask_table
  return
}

// -----

// illegal: tc.lane_masks/offset
func.func @f() {
  // expected-error @+1 {{tc.lane_masks: offset must be an integer multiple of 16 with the table in [0, 232448) of shared memory, got 1032 : i64: an entry is read with one load of 16 bytes}}
  %m = "tc.lane_masks"() {count = 9 : i64, offset = 1032 : i64} : () -> !tc.lane_mask_table
  return
}

// -----

// legal: tc.write_lane_mask/on
func.func @f(%m: !tc.lane_mask_table, %i: index, %on: vector<32xi1>) {
  "tc.write_lane_mask"(%m, %i, %i, %on) : (!tc.lane_mask_table, index, index, vector<32xi1>) -> ()
  return
}

// -----

// illegal: tc.write_lane_mask/on
func.func @f(%m: !tc.lane_mask_table, %i: index, %on: vector<16xi1>) {
  // expected-error @+1 {{tc.write_lane_mask: on must be vector<32xi1>, one bit for each lane of the warp, got vector<16xi1>}}
  "tc.write_lane_mask"(%m, %i, %i, %on) : (!tc.lane_mask_table, index, index, vector<16xi1>) -> ()
  return
}

// -----

// legal: tc.write_lane_mask/quarter
func.func @f(%m: !tc.lane_mask_table, %i: index, %on: vector<32xi1>) {
  %q = arith.constant 3 : index
  "tc.write_lane_mask"(%m, %i, %q, %on) : (!tc.lane_mask_table, index, index, vector<32xi1>) -> ()
  return
}

// -----

// illegal: tc.write_lane_mask/quarter
func.func @f(%m: !tc.lane_mask_table, %i: index, %on: vector<32xi1>) {
  %q = arith.constant 4 : index
  // expected-error @+1 {{tc.write_lane_mask: quarter must be in [0, 4), got 4: a mask is four words of 32 lanes}}
  "tc.write_lane_mask"(%m, %i, %q, %on) : (!tc.lane_mask_table, index, index, vector<32xi1>) -> ()
  return
}

// -----

// legal: tc.enable_lanes/type
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%d: !d, %m: !tc.lane_mask_table, %i: index) {
  %on = "tc.enable_lanes"(%d, %m, %i) : (!d, !tc.lane_mask_table, index) -> !d
  return
}

// -----

// illegal: tc.enable_lanes/type
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%d: !d, %m: !tc.lane_mask_table, %i: index) {
  // expected-error @+1 {{tc.enable_lanes: the result must be of d's type !tc.tmem<array<i64: 128, 64>, f32>, got !tc.tmem<array<i64: 128, 32>, f32>: it is the same tile}}
  %on = "tc.enable_lanes"(%d, %m, %i)
      : (!d, !tc.lane_mask_table, index) -> !tc.tmem<array<i64: 128, 32>, f32>
  return
}

// -----

// legal: tc.enable_lanes/uses
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 16>, f16>
!b = !tc.smem<array<i64: 64, 16>, f16, "K", "32B">
func.func @f(%d: !d, %m: !tc.lane_mask_table, %i: index, %a: !a, %b: !b, %t: i1) {
  %on = "tc.enable_lanes"(%d, %m, %i) : (!d, !tc.lane_mask_table, index) -> !d
  "tc.mma"(%on, %a, %b, %t) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
      : (!d, !a, !b, i1) -> ()
  return
}

// -----

// illegal: tc.enable_lanes/uses
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%d: !d, %m: !tc.lane_mask_table, %i: index) {
  // expected-error @+1 {{tc.enable_lanes: the result must be used as D of tc.mma only, got a use by tc.tmem_ld: only the mma has a mask}}
  %on = "tc.enable_lanes"(%d, %m, %i) : (!d, !tc.lane_mask_table, index) -> !d
  %v = "tc.tmem_ld"(%on, %i, %i) : (!d, index, index) -> vector<32x16xf32>
  return
}
