// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.conv2d/attributes
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// illegal: tc.conv2d/attributes
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: expected strides, dilations and pads as array<i64> of 2, 2 and 4 values, got 2 in pads}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// legal: tc.conv2d/attribute-values
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x6x6x24xf32>
  return
}

// -----

// illegal: tc.conv2d/attribute-values
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: strides and dilations must be >= 1 and pads >= 0, got strides [1, 1], dilations [1, 1], pads [0, -1, 0, 0]; a negative pad is a slice of x}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 0, -1, 0, 0>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// legal: tc.conv2d/filter
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<24x3x3x16xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "fhwc"}
      : (tensor<1x8x8x16xf16>, tensor<24x3x3x16xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// illegal: tc.conv2d/filter
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<24x16x3x3xf16>) {
  // expected-error @+1 {{tc.conv2d: filter must be "hwcf" (w[r,s,c,k]) or "fhwc" (w[k,r,s,c]), got "fchw"}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "fchw"}
      : (tensor<1x8x8x16xf16>, tensor<24x16x3x3xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// 144 elements are three parts of at most 64.
// legal: tc.conv2d/k-part
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", k_part = 64 : i64}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<3x1x8x8x24xf32>
  return
}

// -----

// illegal: tc.conv2d/k-part
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: k_part must be an integer of at least 1, or left out, got 0 : i64}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", k_part = 0 : i64}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<3x1x8x8x24xf32>
  return
}

// -----

// legal: tc.conv2d/part-type
func.func @f(%x: tensor<1x8x8x16xi8>, %w: tensor<3x3x16x24xi8>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", k_part = 48 : i64}
      : (tensor<1x8x8x16xi8>, tensor<3x3x16x24xi8>) -> tensor<3x1x8x8x24xi32>
  return
}

// -----

// illegal: tc.conv2d/part-type
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: out must be of f32 or i32 with k_part, got f16: parts are rounded after they are summed}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", k_part = 48 : i64}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<3x1x8x8x24xf16>
  return
}

// -----

// illegal: tc.conv2d/rank
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: x [n,h,w,c], w and out [n,p,q,k] must have rank 4 (out one more with k_part), got 4, 4, 4}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", k_part = 48 : i64}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// illegal: tc.conv2d/out-shape
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: out must be [3, 1, 8, 8, 24] for these operands, got [2, 1, 8, 8, 24]}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", k_part = 48 : i64}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<2x1x8x8x24xf32>
  return
}

// -----

// legal: tc.conv2d/rank
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// illegal: tc.conv2d/rank
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: x [n,h,w,c], w and out [n,p,q,k] must have rank 4 (out one more with k_part), got 4, 4, 3}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<8x8x24xf32>
  return
}

// -----

// legal: tc.conv2d/static
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// illegal: tc.conv2d/static
func.func @f(%x: tensor<?x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: shapes must be static, got tensor<?x8x8x16xf16>: tensor maps and the grid are fixed at compile time}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<?x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// legal: tc.conv2d/types
func.func @f(%x: tensor<1x8x8x16xbf16>, %w: tensor<3x3x16x24xbf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xbf16>, tensor<3x3x16x24xbf16>) -> tensor<1x8x8x24xbf16>
  return
}

// -----

// illegal: tc.conv2d/types
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xbf16>) {
  // expected-error @+1 {{tc.conv2d: expected f16, bf16 or f32 (as tf32) of one type, or f8E4M3FN and f8E5M2 in any mix, -> f32, f16 or bf16, or i8 x i8 -> i32, got f16 x bf16 -> f32: tensor cores multiply no others; convert one operand first}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xbf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// legal: tc.conv2d/channels
func.func @f(%x: tensor<1x8x8x24xf16>, %w: tensor<3x3x24x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x24xf16>, tensor<3x3x24x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// illegal: tc.conv2d/channels
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x8x24xf16>) {
  // expected-error @+1 {{tc.conv2d: x must have the channels of w for each group, got 16 in x and 8 in w (filter "hwcf") in groups of 1}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x8x24xf16>) -> tensor<1x8x8x24xf32>
  return
}

// -----

// legal: tc.conv2d/groups
func.func @f(%x: tensor<1x8x8x48xf16>, %w: tensor<32x3x3x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "fhwc", groups = 2 : i64}
      : (tensor<1x8x8x48xf16>, tensor<32x3x3x24xf16>) -> tensor<1x8x8x32xf32>
  return
}

// -----

// illegal: tc.conv2d/groups
func.func @f(%x: tensor<1x8x8x72xf16>, %w: tensor<32x3x3x24xf16>) {
  // expected-error @+1 {{tc.conv2d: groups must be an integer of at least 1 that divides the channels of out, or left out, got 3 : i64 for 32 channels}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "fhwc", groups = 3 : i64}
      : (tensor<1x8x8x72xf16>, tensor<32x3x3x24xf16>) -> tensor<1x8x8x32xf32>
  return
}

// -----

// legal: tc.conv2d/filter-fits
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 4, 4>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x2x2x24xf32>
  return
}

// -----

// illegal: tc.conv2d/filter-fits
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: the dilated filter must fit the padded image, got filter [11, 11] and image [10, 10] (h, w)}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 5, 5>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x1x1x24xf32>
  return
}

// -----

// legal: tc.conv2d/out-shape
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x4x8x24xf32>
  return
}

// -----

// illegal: tc.conv2d/out-shape
func.func @f(%x: tensor<1x8x8x16xf16>, %w: tensor<3x3x16x24xf16>) {
  // expected-error @+1 {{tc.conv2d: out must be [1, 4, 8, 24] for these operands, got [1, 8, 4, 24]}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 2, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x8x8x16xf16>, tensor<3x3x16x24xf16>) -> tensor<1x8x4x24xf32>
  return
}

// -----

// legal: tc.matmul/layouts
func.func @f(%a: tensor<64x128xf16>, %b: tensor<64x32xf16>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "kn"}
      : (tensor<64x128xf16>, tensor<64x32xf16>) -> tensor<128x32xf32>
  return
}

// -----

// illegal: tc.matmul/layouts
func.func @f(%a: tensor<128x64xf16>, %b: tensor<64x32xf16>) {
  // expected-error @+1 {{tc.matmul: a_layout must be "mk" or "km" and b_layout "kn" or "nk", got "mk" and "nm"}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nm"}
      : (tensor<128x64xf16>, tensor<64x32xf16>) -> tensor<128x32xf32>
  return
}

// -----

// legal: tc.matmul/rank
func.func @f(%a: tensor<2x128x64xf16>, %b: tensor<2x64x32xf16>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<2x128x64xf16>, tensor<2x64x32xf16>) -> tensor<2x128x32xf32>
  return
}

// -----

// illegal: tc.matmul/rank
func.func @f(%a: tensor<128x64xf16>, %b: tensor<64x32xf16>) {
  // expected-error @+1 {{tc.matmul: a, b and out must all have rank 2, or rank 3 with a leading batch dimension (b with or without one, out one more with k_part), got 2, 2, 3}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<128x64xf16>, tensor<64x32xf16>) -> tensor<1x128x32xf32>
  return
}

// -----

// legal: tc.matmul/static
func.func @f(%a: tensor<128x64xf16>, %b: tensor<64x32xf16>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<128x64xf16>, tensor<64x32xf16>) -> tensor<128x32xf32>
  return
}

// -----

// illegal: tc.matmul/static
func.func @f(%a: tensor<?x64xf16>, %b: tensor<64x32xf16>) {
  // expected-error @+1 {{tc.matmul: shapes must be static, got tensor<?x64xf16>: tensor maps and the grid are fixed at compile time}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<?x64xf16>, tensor<64x32xf16>) -> tensor<128x32xf32>
  return
}

// -----

// legal: tc.matmul/types
func.func @f(%a: tensor<128x64xbf16>, %b: tensor<64x32xbf16>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<128x64xbf16>, tensor<64x32xbf16>) -> tensor<128x32xf32>
  return
}

// -----

// illegal: tc.matmul/types
func.func @f(%a: tensor<128x64xf32>, %b: tensor<64x32xf16>) {
  // expected-error @+1 {{tc.matmul: expected f16, bf16 or f32 (as tf32) of one type, or f8E4M3FN and f8E5M2 in any mix, -> f32, f16 or bf16, or i8 x i8 -> i32, got f32 x f16 -> f32: tensor cores multiply no others; convert one operand first}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<128x64xf32>, tensor<64x32xf16>) -> tensor<128x32xf32>
  return
}

// -----

// legal: tc.matmul/k
func.func @f(%a: tensor<128x64xf16>, %b: tensor<32x64xf16>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"}
      : (tensor<128x64xf16>, tensor<32x64xf16>) -> tensor<128x32xf32>
  return
}

// -----

// illegal: tc.matmul/k
func.func @f(%a: tensor<128x64xf16>, %b: tensor<32x64xf16>) {
  // expected-error @+1 {{tc.matmul: a and b must have the same K, got 64 (a_layout "mk") and 32 (b_layout "kn")}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<128x64xf16>, tensor<32x64xf16>) -> tensor<128x32xf32>
  return
}

// -----

// legal: tc.matmul/out-shape
func.func @f(%a: tensor<2x128x64xf16>, %b: tensor<2x64x32xf16>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<2x128x64xf16>, tensor<2x64x32xf16>) -> tensor<2x128x32xf32>
  return
}

// -----

// illegal: tc.matmul/out-shape
func.func @f(%a: tensor<2x128x64xf16>, %b: tensor<3x64x32xf16>) {
  // expected-error @+1 {{tc.matmul: out must be [2, 128, 32] for these operands, got [2, 128, 32] (batches of a and b: [2] and [3])}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"}
      : (tensor<2x128x64xf16>, tensor<3x64x32xf16>) -> tensor<2x128x32xf32>
  return
}

// -----

// legal: tc.conv2d/unsigned
func.func @f(%x: tensor<1x8x8x16xi8>, %w: tensor<3x3x16x32xi8>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", unsigned = array<i64: 1, 0>}
      : (tensor<1x8x8x16xi8>, tensor<3x3x16x32xi8>) -> tensor<1x8x8x32xi32>
  return
}

// -----

// illegal: tc.conv2d/unsigned
func.func @f(%x: tensor<1x8x8x16xi8>, %w: tensor<3x3x16x32xi8>) {
  // expected-error @+1 {{tc.conv2d: unsigned must be array<i64: x, w> of 0 or 1 on i8 operands, got array<i64: 2, 0> on i8: only integers come unsigned}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf", unsigned = array<i64: 2, 0>}
      : (tensor<1x8x8x16xi8>, tensor<3x3x16x32xi8>) -> tensor<1x8x8x32xi32>
  return
}

// -----

// legal: tc.matmul/unsigned
func.func @f(%a: tensor<16x32xi8>, %b: tensor<32x24xi8>) {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", unsigned = array<i64: 0, 1>} : (tensor<16x32xi8>, tensor<32x24xi8>) -> tensor<16x24xi32>
  return
}

// -----

// illegal: tc.matmul/unsigned
func.func @f(%a: tensor<16x32xf16>, %b: tensor<32x24xf16>) {
  // expected-error @+1 {{tc.matmul: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 0, 1> on f16: only integers come unsigned}}
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", unsigned = array<i64: 0, 1>} : (tensor<16x32xf16>, tensor<32x24xf16>) -> tensor<16x24xf32>
  return
}

// -----

// legal: tc.matmul/out-layout
func.func @f(%a: tensor<8x16xf16>, %b: tensor<16x24xf16>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", out_layout = "nm"}
      : (tensor<8x16xf16>, tensor<16x24xf16>) -> tensor<24x8xf32>
  return
}

// -----

// illegal: tc.matmul/out-layout
func.func @f(%a: tensor<8x16xf16>, %b: tensor<16x24xf16>) {
  // expected-error @+1 {{tc.matmul: out_layout must be "mn" or "nm", or left out, got "km"}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", out_layout = "km"}
      : (tensor<8x16xf16>, tensor<16x24xf16>) -> tensor<24x8xf32>
  return
}

// -----

// illegal: tc.matmul/out-shape
func.func @f(%a: tensor<8x16xf16>, %b: tensor<16x24xf16>) {
  // expected-error @+1 {{tc.matmul: out must be [24, 8] for these operands, got [8, 24] (batches of a and b: [] and [])}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", out_layout = "nm"}
      : (tensor<8x16xf16>, tensor<16x24xf16>) -> tensor<8x24xf32>
  return
}

// -----

// 130 elements of K are three parts of at most 64.
// legal: tc.matmul/k-part
func.func @f(%a: tensor<8x130xf16>, %b: tensor<130x24xf16>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", k_part = 64 : i64}
      : (tensor<8x130xf16>, tensor<130x24xf16>) -> tensor<3x8x24xf32>
  return
}

// -----

// illegal: tc.matmul/k-part
func.func @f(%a: tensor<8x130xf16>, %b: tensor<130x24xf16>) {
  // expected-error @+1 {{tc.matmul: k_part must be an integer of at least 1, or left out, got 0 : i64}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", k_part = 0 : i64}
      : (tensor<8x130xf16>, tensor<130x24xf16>) -> tensor<3x8x24xf32>
  return
}

// -----

// legal: tc.matmul/part-type
func.func @f(%a: tensor<8x130xi8>, %b: tensor<130x24xi8>) {
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", k_part = 128 : i64}
      : (tensor<8x130xi8>, tensor<130x24xi8>) -> tensor<2x8x24xi32>
  return
}

// -----

// illegal: tc.matmul/part-type
func.func @f(%a: tensor<8x130xf16>, %b: tensor<130x24xf16>) {
  // expected-error @+1 {{tc.matmul: out must be of f32 or i32 with k_part, got f16: parts are rounded after they are summed}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", k_part = 64 : i64}
      : (tensor<8x130xf16>, tensor<130x24xf16>) -> tensor<3x8x24xf16>
  return
}

// -----

// illegal: tc.matmul/out-shape
func.func @f(%a: tensor<8x130xf16>, %b: tensor<130x24xf16>) {
  // expected-error @+1 {{tc.matmul: out must be [3, 8, 24] for these operands, got [2, 8, 24] (batches of a and b: [] and [])}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn", k_part = 64 : i64}
      : (tensor<8x130xf16>, tensor<130x24xf16>) -> tensor<2x8x24xf32>
  return
}
