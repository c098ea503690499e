// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @conv2d(
// CHECK: "tc.conv2d"({{%.*}}, {{%.*}}) {dilations = array<i64: 1, 1>, filter = "hwcf", pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf32>
func.func @conv2d(%x: tensor<1x56x56x64xf16>, %w: tensor<3x3x64x64xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf32>
  return
}

// -----

// CHECK-LABEL: func.func @matmul(
// CHECK: "tc.matmul"({{%.*}}, {{%.*}}) {a_layout = "mk", b_layout = "nk"} : (tensor<512x256xbf16>, tensor<384x256xbf16>) -> tensor<512x384xf32>
func.func @matmul(%a: tensor<512x256xbf16>, %b: tensor<384x256xbf16>) {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"}
      : (tensor<512x256xbf16>, tensor<384x256xbf16>) -> tensor<512x384xf32>
  return
}
