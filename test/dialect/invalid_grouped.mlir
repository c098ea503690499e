// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.grouped_matmul/layouts
func.func @f(%a: tensor<64x16xf16>, %b: tensor<3x16x24xf16>, %s: tensor<3xi32>) {
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "kn"}
      : (tensor<64x16xf16>, tensor<3x16x24xf16>, tensor<3xi32>) -> tensor<64x24xf32>
  return
}

// -----

// illegal: tc.grouped_matmul/layouts
func.func @f(%a: tensor<16x64xf16>, %b: tensor<3x16x24xf16>, %s: tensor<3xi32>) {
  // expected-error @+1 {{tc.grouped_matmul: a_layout must be "mk" and b_layout "kn" or "nk", got "km" and "kn": a group is rows of a}}
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "km", b_layout = "kn"}
      : (tensor<16x64xf16>, tensor<3x16x24xf16>, tensor<3xi32>) -> tensor<64x24xf32>
  return
}

// -----

// legal: tc.grouped_matmul/rank
func.func @f(%a: tensor<3x64x16xf16>, %b: tensor<3x16x24xf16>, %s: tensor<3xi32>) {
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "kn"}
      : (tensor<3x64x16xf16>, tensor<3x16x24xf16>, tensor<3xi32>) -> tensor<3x64x24xf32>
  return
}

// -----

// illegal: tc.grouped_matmul/rank
func.func @f(%a: tensor<64x16xf16>, %b: tensor<16x24xf16>, %s: tensor<3xi32>) {
  // expected-error @+1 {{tc.grouped_matmul: a and out must have rank 2, or rank 3 with the group in front, and b rank 3, got 2, 2, 2}}
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "kn"}
      : (tensor<64x16xf16>, tensor<16x24xf16>, tensor<3xi32>) -> tensor<64x24xf32>
  return
}

// -----

// legal: tc.grouped_matmul/static
func.func @f(%a: tensor<64x16xf16>, %b: tensor<3x24x16xf16>, %s: tensor<3xi32>) {
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "nk"}
      : (tensor<64x16xf16>, tensor<3x24x16xf16>, tensor<3xi32>) -> tensor<64x24xf32>
  return
}

// -----

// illegal: tc.grouped_matmul/static
func.func @f(%a: tensor<?x16xf16>, %b: tensor<3x24x16xf16>, %s: tensor<3xi32>) {
  // expected-error @+1 {{tc.grouped_matmul: shapes must be static, got tensor<?x16xf16>: only the sizes of the groups are known at run time}}
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "nk"}
      : (tensor<?x16xf16>, tensor<3x24x16xf16>, tensor<3xi32>) -> tensor<?x24xf32>
  return
}

// -----

// legal: tc.grouped_matmul/types
func.func @f(%a: tensor<64x16xi8>, %b: tensor<3x24x16xi8>, %s: tensor<3xi32>) {
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "nk"}
      : (tensor<64x16xi8>, tensor<3x24x16xi8>, tensor<3xi32>) -> tensor<64x24xi32>
  return
}

// -----

// illegal: tc.grouped_matmul/types
func.func @f(%a: tensor<64x16xf16>, %b: tensor<3x24x16xbf16>, %s: tensor<3xi32>) {
  // expected-error @+1 {{tc.grouped_matmul: expected f16, bf16 or f32 (as tf32) of one type, or f8E4M3FN and f8E5M2 in any mix, -> f32, f16 or bf16, or i8 x i8 -> i32, got f16 x bf16 -> f32: tensor cores multiply no others; convert one operand first}}
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "nk"}
      : (tensor<64x16xf16>, tensor<3x24x16xbf16>, tensor<3xi32>) -> tensor<64x24xf32>
  return
}

// -----

// legal: tc.grouped_matmul/sizes
func.func @f(%a: tensor<64x16xf16>, %b: tensor<1x24x16xf16>, %s: tensor<1xi32>) {
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "nk"}
      : (tensor<64x16xf16>, tensor<1x24x16xf16>, tensor<1xi32>) -> tensor<64x24xf32>
  return
}

// -----

// illegal: tc.grouped_matmul/sizes
func.func @f(%a: tensor<64x16xf16>, %b: tensor<3x24x16xf16>, %s: tensor<4xi32>) {
  // expected-error @+1 {{tc.grouped_matmul: sizes must be tensor<3xi32>, one for each matrix of b, of at most 1024, got tensor<4xi32>}}
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "nk"}
      : (tensor<64x16xf16>, tensor<3x24x16xf16>, tensor<4xi32>) -> tensor<64x24xf32>
  return
}

// -----

// legal: tc.grouped_matmul/shapes
func.func @f(%a: tensor<3x64x16xf16>, %b: tensor<3x24x16xf16>, %s: tensor<3xi32>) {
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "nk"}
      : (tensor<3x64x16xf16>, tensor<3x24x16xf16>, tensor<3xi32>) -> tensor<3x64x24xbf16>
  return
}

// -----

// illegal: tc.grouped_matmul/shapes
func.func @f(%a: tensor<2x64x16xf16>, %b: tensor<3x24x16xf16>, %s: tensor<3xi32>) {
  // expected-error @+1 {{tc.grouped_matmul: expected a [T,16] or [3,C,16] and out of the same rows by 24 columns, got [2, 64, 16] and [2, 64, 24]}}
  %c = "tc.grouped_matmul"(%a, %b, %s) {a_layout = "mk", b_layout = "nk"}
      : (tensor<2x64x16xf16>, tensor<3x24x16xf16>, tensor<3xi32>) -> tensor<2x64x24xf32>
  return
}

// -----

// legal: tc.find_group/sizes
func.func @f(%s: memref<3xi32>, %t: index) {
  %g, %f, %c = "tc.find_group"(%s, %t) : (memref<3xi32>, index) -> (index, index, index)
  return
}

// -----

// illegal: tc.find_group/sizes
func.func @f(%s: memref<3xi64>, %t: index) {
  // expected-error @+1 {{tc.find_group: sizes must be memref<G x i32> of at most 1024 groups, got memref<3xi64>}}
  %g, %f, %c = "tc.find_group"(%s, %t) : (memref<3xi64>, index) -> (index, index, index)
  return
}

// -----

// legal: tc.find_group/capacity
func.func @f(%s: memref<3xi32>, %t: index) {
  %g, %f, %c = "tc.find_group"(%s, %t) {capacity = 200 : i64} : (memref<3xi32>, index) -> (index, index, index)
  return
}

// -----

// illegal: tc.find_group/capacity
func.func @f(%s: memref<3xi32>, %t: index) {
  // expected-error @+1 {{tc.find_group: capacity must be an integer of at least 1, or left out, got 0 : i64}}
  %g, %f, %c = "tc.find_group"(%s, %t) {capacity = 0 : i64} : (memref<3xi32>, index) -> (index, index, index)
  return
}
