// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @quantise(
// CHECK: "tc.quantise_blocks"(%arg0, %arg1) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<200x128xf32>, tensor<f32>) -> (tensor<200x128xf4E2M1FN>, tensor<2x2x512xf8E4M3FN>)
// CHECK: "tc.quantise_rows"(%arg2) : (vector<32x64xf32>) -> (vector<32x32xi8>, vector<32x4xf8E4M3FN>)
// CHECK: "tc.store_scales"
// CHECK: (tensor<200x128xf4E2M1FN>, tensor<200x8xf8E4M3FN>)
func.func @quantise(%y: tensor<200x128xf32>, %norm: tensor<f32>, %v: vector<32x64xf32>, %out: memref<2x2x512xf8E4M3FN>, %m: index, %n: index) {
  %q:2 = "tc.quantise_blocks"(%y, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<200x128xf32>, tensor<f32>) -> (tensor<200x128xf4E2M1FN>, tensor<2x2x512xf8E4M3FN>)
  %r:2 = "tc.quantise_rows"(%v) : (vector<32x64xf32>) -> (vector<32x32xi8>, vector<32x4xf8E4M3FN>)
  "tc.store_scales"(%r#1, %out, %m, %n) {rows = 200 : i64, scales = 8 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x4xf8E4M3FN>, memref<2x2x512xf8E4M3FN>, index, index) -> ()
  %s:2 = "tc.quantise_blocks"(%y, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<200x128xf32>, tensor<f32>) -> (tensor<200x128xf4E2M1FN>, tensor<200x8xf8E4M3FN>)
  return
}
