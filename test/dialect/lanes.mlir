// RUN: %tc-opt %s --split-input-file | %filecheck %s

// CHECK-LABEL: func.func @lane_index(
// CHECK: "tc.lane_index"() : () -> vector<32xindex>
func.func @lane_index() {
  %lane = "tc.lane_index"() : () -> vector<32xindex>
  return
}

// -----

// CHECK-LABEL: func.func @store_lanes(
// CHECK: "tc.store_lanes"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
func.func @store_lanes(%v: vector<32x16xf32>, %out: memref<4x56x64xf32>, %n: vector<32xindex>, %k: index) {
  "tc.store_lanes"(%v, %out, %n, %n, %k) {operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (vector<32x16xf32>, memref<4x56x64xf32>, vector<32xindex>, vector<32xindex>, index) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @masks(
// CHECK: "tc.lane_masks"() {count = 9 : i64} : () -> !tc.lane_mask_table
// CHECK: "tc.write_lane_mask"({{%.*}}, {{%.*}}, {{%.*}}, {{%.*}}) : (!tc.lane_mask_table, index, index, vector<32xi1>) -> ()
// CHECK: "tc.enable_lanes"({{%.*}}, {{%.*}}, {{%.*}}) : (!tc.tmem<array<i64: 128, 64>, f32>, !tc.lane_mask_table, index) -> !tc.tmem<array<i64: 128, 64>, f32>
func.func @masks(%i: index, %on: vector<32xi1>, %d: !tc.tmem<array<i64: 128, 64>, f32>) {
  %m = "tc.lane_masks"() {count = 9 : i64} : () -> !tc.lane_mask_table
  "tc.write_lane_mask"(%m, %i, %i, %on) : (!tc.lane_mask_table, index, index, vector<32xi1>) -> ()
  %e = "tc.enable_lanes"(%d, %m, %i) : (!tc.tmem<array<i64: 128, 64>, f32>, !tc.lane_mask_table, index) -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}
