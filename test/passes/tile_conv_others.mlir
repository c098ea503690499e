// Functions of other ops are left to tile-gemm, and refused without the option.
// RUN: %tc-opt %s --tile-conv="{others=true}" 2>/dev/null | %filecheck %s
// RUN: %tc-opt %s --tile-conv="{others=true}" --tile-gemm 2>/dev/null | %filecheck %s --check-prefix=BOTH
// RUN: %exits 3 %tc-opt %s --tile-conv 2>&1 | %filecheck %s --check-prefix=ALONE
// RUN: %exits 3 %tc-opt %s --tile-gemm 2>&1 | %filecheck %s --check-prefix=GEMM

// CHECK: func.func @g(%{{.*}}: tensor<16x8xf16>
// CHECK: "tc.matmul"
// CHECK: func.func @f(%{{.*}}: memref<1x6x8x8xf16>{{.*}}tc.kernel
// BOTH-DAG: func.func @f(%{{.*}}: memref<1x6x8x8xf16>{{.*}}tc.kernel
// BOTH-DAG: func.func @g(%{{.*}}: memref<16x8xf16>{{.*}}tc.kernel
// ALONE: tile-conv expected a function of one tc.conv2d and func.return, got tc.matmul, func.return (run raise-to-tc first, and use the pipeline for this op; layers takes convolutions and products in one function)
// GEMM: tile-gemm expected a function of one tc.matmul and func.return, got tc.conv2d, func.return (run raise-to-tc first, and use the pipeline for this op; layers takes convolutions and products in one function)
func.func @f(%x: tensor<1x6x8x8xf16>, %w: tensor<16x3x3x8xf16>) -> tensor<1x4x6x16xf32> attributes {tc.args = array<i64: 0, 1, 4>, tc.order = 0 : i64} {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc"} : (tensor<1x6x8x8xf16>, tensor<16x3x3x8xf16>) -> tensor<1x4x6x16xf32>
  return %y : tensor<1x4x6x16xf32>
}
func.func @g(%a: tensor<16x8xf16>, %b: tensor<8x8xf16>) -> tensor<16x8xf32> attributes {tc.args = array<i64: 2, 3, 5>, tc.order = 1 : i64} {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<16x8xf16>, tensor<8x8xf16>) -> tensor<16x8xf32>
  return %c : tensor<16x8xf32>
}
