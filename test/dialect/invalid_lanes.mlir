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
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// illegal: tc.store_lanes/value
func.func @f(%v: vector<16x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  // expected-error @+1 {{tc.store_lanes: value must be vector<32 x columns x element> (one row per thread of a warp), got vector<16x16xf32>}}
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<16x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// legal: tc.store_lanes/tensor
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// illegal: tc.store_lanes/tensor
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32, strided<[4096, 64, 1]>>, %n: vector<32xindex>, %k: index) {
  // expected-error @+1 {{tc.store_lanes: tensor must be a static, contiguous memref of rank >= 2, got memref<4x56x64xf32, strided<[4096, 64, 1]>>: rows are clipped against its extents}}
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<32x16xf32>, memref<4x56x64xf32, strided<[4096, 64, 1]>>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// legal: tc.store_lanes/element
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// illegal: tc.store_lanes/element
func.func @f(%v: vector<32x16xf16>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  // expected-error @+1 {{tc.store_lanes: value and tensor must have the same element type, got f16 and f32; convert with arith.truncf first}}
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<32x16xf16>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// legal: tc.store_lanes/places
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// illegal: tc.store_lanes/places
func.func @f(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  // expected-error @+1 {{tc.store_lanes: expected one vector<32xindex> per dimension of the tensor but the last (2), got vector<32xindex>}}
  "tc.store_lanes"(%v, %out, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, index) -> ()
  return
}
