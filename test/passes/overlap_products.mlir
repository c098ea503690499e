// RUN: %tc-opt %s --target=sm_90a --raise-to-tc --split-launches --tile-conv-implicit-gemm --multi-buffer="{stages=4}" --place-barriers --plan-memory --assign-roles --unroll-rings --overlap-products | %filecheck --check-prefix=LAPS %s
// RUN: %tc-opt %s --target=sm_90a --raise-to-tc --split-launches --tile-conv-implicit-gemm --multi-buffer="{stages=6}" --place-barriers --plan-memory --assign-roles --unroll-rings --overlap-products | %filecheck --check-prefix=STEPS %s
// RUN: %tc-opt %s --target=sm_90a --raise-to-tc --split-launches --tile-conv-implicit-gemm --multi-buffer="{stages=3}" --place-barriers --plan-memory --assign-roles --unroll-rings --overlap-products | %filecheck --check-prefix=FEW %s
// RUN: %exits 3 %tc-opt %s --target=sm_90a --overlap-products 2>&1 | %filecheck --check-prefix=EARLY %s

// Two laps of four slots, and a step that is left: a slot is freed when the next group is issued and its own is done.
// LAPS: kind = "producer"
// LAPS: scf.for {{.*}} = %c0 to %c8 step %c4 iter_args
// LAPS: "tc.mbarrier_wait"
// LAPS: "tc.wgmma"
// LAPS: "tc.wgmma_wait"({{%.*}}) {pending = 1 : i64}
// LAPS-NOT: "tc.mbarrier_arrive"
// LAPS: "tc.wgmma"
// LAPS: "tc.wgmma_wait"({{%.*}}) {pending = 1 : i64}
// LAPS-NEXT: "tc.mbarrier_arrive"
// LAPS: "tc.wgmma_wait"({{%.*}}) {pending = 1 : i64}
// LAPS-NEXT: "tc.mbarrier_arrive"
// LAPS: "tc.wgmma_wait"({{%.*}}) {pending = 0 : i64}
// LAPS-NEXT: "tc.mbarrier_arrive"
// LAPS-NEXT: "tc.mbarrier_arrive"
// LAPS-NEXT: scf.yield
// LAPS: "tc.slot"({{%.*}}, %c0)
// LAPS: "tc.wgmma"
// LAPS: "tc.wgmma_wait"({{%.*}}) {pending = 0 : i64}
// LAPS-NEXT: "tc.mbarrier_arrive"
// LAPS-NEXT: "tc.store_fragment"

// Fewer than two laps are no loop.
// STEPS: kind = "producer"
// STEPS-NOT: scf.for
// STEPS-COUNT-8: {pending = 1 : i64}
// STEPS: {pending = 0 : i64}

// A ring of three slots has none to spare.
// FEW: kind = "producer"
// FEW-COUNT-3: {pending = 0 : i64}
// FEW-NOT: pending = 1

// EARLY: overlap-products expected a function with the attribute tc.kernel, got none; run assign-roles first
func.func @conv(%x: tensor<1x10x14x32xf16>, %w: tensor<3x3x32x32xf16>) -> tensor<1x8x12x32xf32> {
  %f0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x12x32xf32>
  %z = linalg.fill ins(%f0 : f32) outs(%e : tensor<1x8x12x32xf32>) -> tensor<1x8x12x32xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x10x14x32xf16>, tensor<3x3x32x32xf16>) outs(%z : tensor<1x8x12x32xf32>) -> tensor<1x8x12x32xf32>
  return %y : tensor<1x8x12x32xf32>
}
