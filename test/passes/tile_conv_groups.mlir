// A tile of output channels lies in one group, and loads the channels of that group: the tile's first output, divided by
// the outputs of a group, times its channels. A step has one swizzle span that divides the channels of a group.
// RUN: %tc-opt %s --tile-conv-implicit-gemm="{n-tile=48}" | %filecheck %s --check-prefixes=CHECK,GEMM
// RUN: %tc-opt %s --tile-conv-shift-reuse="{n-tile=48}" | %filecheck %s --check-prefixes=CHECK,SHIFT
// RUN: %tc-opt %s --tile-conv-smem-offset="{n-tile=48}" | %filecheck %s --check-prefixes=CHECK,OFFSET

// CHECK: func.func @grouped({{.*}}) attributes {{.*}}tc.grid = array<i64: {{[0-9]+}}, 4, 1>
// CHECK: %[[Y:.*]] = gpu.block_id y
// CHECK: %[[K0:.*]] = arith.muli %[[Y]], %c48
// CHECK: %[[G:.*]] = arith.divui %[[K0]], %c96 : index
// CHECK: %[[FIRST:.*]] = arith.muli %[[G]], %c48
// OFFSET: %[[COLUMN:.*]] = arith.divui %[[FIRST]], %c8
// CHECK: scf.for
// GEMM: %[[C0:.*]] = arith.addi {{.*}}%[[FIRST]]{{[ ,]}}
// GEMM: "tc.tma_load"(%{{.*}}, %[[C0]], {{.*}}) {{.*}}!tc.smem<array<i64: 128, 16>, f16, "K", "32B">
// SHIFT: %[[C0:.*]] = arith.addi {{.*}}%[[FIRST]]{{[ ,]}}
// SHIFT: "tc.tma_load"(%{{.*}}, %[[C0]], {{.*}}) {{.*}}!tc.smem<array<i64: 128, 16>, f16, "K", "32B">
// OFFSET: arith.addi {{.*}}%[[COLUMN]]{{[ ,]}}
// CHECK: "tc.tma_load"
func.func @grouped(%x: tensor<1x9x9x96xf16>, %w: tensor<192x3x3x48xf16>) -> tensor<1x7x7x192xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "fhwc", groups = 2 : i64} : (tensor<1x9x9x96xf16>, tensor<192x3x3x48xf16>) -> tensor<1x7x7x192xf32>
  return %y : tensor<1x7x7x192xf32>
}
