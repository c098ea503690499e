// A remark where another schedule is modelled cheaper; the program stays as it was.
// RUN: %tc-opt %s --compare-conv-schedules 2>&1 | %filecheck %s
// RUN: %exits 3 %tc-opt %s --compare-conv-schedules="{n-tile=20}" | %filecheck %s --check-prefix=N20

// CHECK: remark: conv-shift-reuse{tiling=rows} with n-tile=64 is built and takes {{.*}} us; the cheapest schedule, conv-{{.*}} with n-tile=16, takes
// CHECK-SAME: (both modelled, not measured); pipeline conv builds the cheapest
// CHECK: conv-implicit-gemm
// CHECK: "tc.conv2d"
// CHECK-NOT: scf.for
// N20: error: expected n-tile to be a multiple of 16 in [16, 256], got 20
func.func @one_tap(%x: tensor<1x14x14x64xf16>, %w: tensor<1x1x64x64xf16>) -> tensor<1x14x14x64xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x14x14x64xf16>, tensor<1x1x64x64xf16>) -> tensor<1x14x14x64xf32>
  return %y : tensor<1x14x14x64xf32>
}
