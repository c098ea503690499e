// RUN: %tc-opt --pipeline='conv-smem-offset{n-tile=32 stages=2}' --target=sm_90a --mlir-print-ir-after=tile-conv-smem-offset -o %t.mlir %s 2>&1 | %filecheck --check-prefix=TILE %s
// RUN: %tc-opt --pipeline='conv-smem-offset{n-tile=32 stages=2}' --target=sm_90a --emit=ptx %s | %filecheck --check-prefix=PTX %s

// Images of 10 rows of 14 pixels, without padding: the last two positions of a row and the last two rows are no outputs.
// One walk of 64 positions, and of the 30 further that the last tap reaches; nine taps of one tile, each from its row on.
// TILE: tc.target = "sm_90a", tc.warp_map = "wgmma-one", tc.warps = array<i64: 4, 1>
// TILE: "tc.make_tensor_map"({{.*}}) {box = array<i64: 32, 94>, corners = array<i64: 0, 0, 0, 0>, {{.*}} mode = "im2col"
// TILE: [[D:%.*]] = scf.for {{.*}} iter_args([[C:%.*]] = {{%.*}})
// TILE: [[A:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 96, 32>, f16, "K", "64B">
// TILE-COUNT-9: "tc.smem_tile"() : () -> !tc.smem<array<i64: 32, 32>, f16, "MN", "64B">
// TILE-COUNT-10: "tc.tma_load"
// TILE: [[N:%.*]] = "tc.wgmma_taps"([[A]], [[A]], [[A]], {{.*}}, [[C]]) {operandSegmentSizes = array<i32: 9, 9, 1>, rows = array<i64: 0, 1, 2, 14, 15, 16, 28, 29, 30>}
// TILE: scf.yield [[N]]
// TILE: "tc.store_fragment"([[D]], {{.*}}) {{{.*}}tails = "outer", walk = array<i64: 10, 14>}

// PTX: .reqntid 160
// PTX: cp.async.bulk.tensor.4d{{.*}}.im2col
// PTX: wgmma.fence.sync.aligned;
// PTX-COUNT-18: wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16
// PTX-NEXT: wgmma.commit_group.sync.aligned;

func.func @conv(%x: tensor<1x10x14x32xf16>, %w: tensor<3x3x32x32xf16>) -> tensor<1x8x12x32xf32> {
  %f0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x12x32xf32>
  %z = linalg.fill ins(%f0 : f32) outs(%e : tensor<1x8x12x32xf32>) -> tensor<1x8x12x32xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x10x14x32xf16>, tensor<3x3x32x32xf16>) outs(%z : tensor<1x8x12x32xf32>) -> tensor<1x8x12x32xf32>
  return %y : tensor<1x8x12x32xf32>
}
