// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.sum_parts/shape
func.func @f(%p: tensor<3x40x24xf32>) {
  %c = "tc.sum_parts"(%p) : (tensor<3x40x24xf32>) -> tensor<40x24xf32>
  return
}

// -----

// illegal: tc.sum_parts/shape
func.func @f(%p: tensor<40x24xf32>) {
  // expected-error @+1 {{tc.sum_parts: parts must be static and have one dimension more than out, in front, got tensor<40x24xf32> and tensor<40x24xf32>}}
  %c = "tc.sum_parts"(%p) : (tensor<40x24xf32>) -> tensor<40x24xf32>
  return
}

// -----

// legal: tc.sum_parts/types
func.func @f(%p: tensor<3x40x24xf32>) {
  %c = "tc.sum_parts"(%p) : (tensor<3x40x24xf32>) -> tensor<40x24xbf16>
  return
}

// -----

// illegal: tc.sum_parts/types
func.func @f(%p: tensor<3x40x24xf16>) {
  // expected-error @+1 {{tc.sum_parts: parts must be of f32 with out of f32, f16 or bf16, or both of i32, got f16 and f16}}
  %c = "tc.sum_parts"(%p) : (tensor<3x40x24xf16>) -> tensor<40x24xf16>
  return
}
