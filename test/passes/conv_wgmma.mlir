// RUN: %tc-opt --pipeline='conv-implicit-gemm{n-tile=32 stages=2 split-k=1}' --target=sm_90a --mlir-print-ir-after=tile-conv-implicit-gemm -o %t.mlir %s 2>&1 | %filecheck --check-prefix=TILE %s
// RUN: %tc-opt --pipeline='conv-implicit-gemm{n-tile=32 stages=2 split-k=1}' --target=sm_90a --emit=ptx %s | %filecheck --check-prefix=PTX %s
// RUN: %tc-opt --pipeline='conv-implicit-gemm{n-tile=64 programmatic=true stages=1}' --target=sm_90a --emit=ptx %S/Inputs/conv_two_ctas.mlir | %filecheck --check-prefix=TWO %s
// RUN: %tc-opt --pipeline='conv-implicit-gemm{n-tile=64 programmatic=true stages=1}' --target=sm_90a --mlir-print-ir-after=programmatic-launch -o %t.mlir %S/Inputs/conv_two_ctas.mlir 2>&1 | %filecheck --check-prefix=SMEM %s

// Few pixels: 64 a tile, and one warpgroup. The loop over taps carries the sums; the output is a matrix of pixels and channels.
// TILE: tc.target = "sm_90a", tc.warp_map = "wgmma-one", tc.warps = array<i64: 4, 1>
// TILE: "tc.make_tensor_map"({{.*}}) {box = array<i64: 32, 64>, {{.*}} mode = "im2col"
// TILE: [[ROWS:%.*]] = memref.collapse_shape {{.*}} into memref<96x32xf32>
// TILE: [[ZERO:%.*]] = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 64, 32>, f32, "C", "mma.m16n8k16.f16">
// TILE: [[D:%.*]] = scf.for {{.*}} iter_args([[C:%.*]] = [[ZERO]])
// TILE: [[A:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 64, 32>, f16, "K", "64B">
// TILE: [[B:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 32, 32>, f16, "MN", "64B">
// TILE: "tc.tma_load"({{.*}}, [[A]])
// TILE: "tc.tma_load"({{.*}}, [[B]])
// TILE: [[N:%.*]] = "tc.wgmma"([[A]], [[B]], [[C]])
// TILE: scf.yield [[N]]
// TILE: "tc.store_fragment"([[D]], [[ROWS]], {{.*}}) {{.*}}tails = "outer"

// PTX: .reqntid 160
// PTX: cp.async.bulk.tensor.4d{{.*}}.im2col
// PTX: wgmma.fence.sync.aligned;
// PTX-COUNT-2: wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16
// PTX: wgmma.commit_group.sync.aligned;

func.func @conv(%x: tensor<1x10x14x32xf16>, %w: tensor<3x3x32x32xf16>) -> tensor<1x8x12x32xf32> {
  %f0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x12x32xf32>
  %z = linalg.fill ins(%f0 : f32) outs(%e : tensor<1x8x12x32xf32>) -> tensor<1x8x12x32xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x10x14x32xf16>, tensor<3x3x32x32xf16>) outs(%z : tensor<1x8x12x32xf32>) -> tensor<1x8x12x32xf32>
  return %y : tensor<1x8x12x32xf32>
}

// 184 tiles of 192 pixels: two CTAs on an SM, whose third of the shared memory keeps a third one away.
// TWO: .minnctapersm 2
// TWO: griddepcontrol.wait;
// SMEM: tc.ctas_per_sm = 2
// SMEM-SAME: tc.grid = array<i64: 92, 2, 1>
// SMEM-SAME: tc.smem_bytes = 77824
