// RUN: %tc-opt %s --target=sm_90a --fuse-epilogue --raise-to-tc --split-launches --tile-gemm="{n-tile=128 persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --defer-stores | %filecheck %s
// RUN: %tc-opt %s --target=sm_90a --fuse-epilogue --raise-to-tc --split-launches --tile-gemm="{n-tile=64}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles | %filecheck --check-prefix=PLAIN %s
// RUN: %tc-opt --pipeline='gemm{n-tile=64 stages=2}' --target=sm_90a --emit=ptx %s | %filecheck --check-prefix=PTX %s
// RUN: %exits 3 %tc-opt --pipeline='gemm{n-tile=96}' --target=sm_90a %s 2>&1 | %filecheck --check-prefix=WIDTH %s

// Codes and scales of 64 columns wait for the next tile, whose steps store them.
// CHECK: [[LAST:%.*]]:6 = scf.for {{.*}} iter_args([[Q0:%.*]] = {{%.*}}, [[S0:%.*]] = {{%.*}}, [[Q1:%.*]] = {{%.*}}, [[S1:%.*]] = {{%.*}}, [[M:%.*]] = %c0, [[N:%.*]] = %c0)
// CHECK: "tc.wgmma"
// CHECK: scf.if
// CHECK: "tc.store_fragment"([[Q0]], {{%.*}}, [[M]], [[N]])
// CHECK: "tc.store_fragment_scales"([[S0]], {{%.*}}, [[M]], [[N]]) {operandSegmentSizes = array<i32: 1, 1, 2>, rows = 200 : i64, scales = 5 : i64}
// CHECK: "tc.wgmma_wait"
// CHECK: "tc.wgmma"
// CHECK: "tc.store_fragment"([[Q1]],
// CHECK: "tc.store_fragment_scales"([[S1]],
// CHECK: [[FIRST:%.*]] = "tc.fragment_part"({{.*}}) {first = 0 : i64}
// CHECK: [[ADDED:%.*]] = "tc.fragment_epilogue"([[FIRST]],
// CHECK: [[BOTH:%.*]]:2 = "tc.quantise_fragment"([[ADDED]]) : (!tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">) -> (!tc.fragment<array<i64: 128, 64>, f8E4M3FN, "C", "mma.m16n8k16.f16">, !tc.fragment<array<i64: 128, 64>, f8E8M0FNU, "C", "mma.m16n8k16.f16">)
// CHECK: scf.yield [[BOTH]]#0, [[BOTH]]#1,

// PLAIN: [[BOTH:%.*]]:2 = "tc.quantise_fragment"
// PLAIN: "tc.store_fragment"([[BOTH]]#0,
// PLAIN-SAME: tails = "outer inner"
// PLAIN: "tc.store_fragment_scales"([[BOTH]]#1,

// Two exchanges bring the largest of four threads' magnitudes.
// PTX: shfl.sync.bfly.b32 {{.*}}, 1, 31, -1;
// PTX: shfl.sync.bfly.b32 {{.*}}, 2, 31, -1;
// PTX: cvt.rn.satfinite.e4m3x2.f32
// PTX: st.global.u8

// WIDTH: error: expected n-tile to be a multiple of 64 to quantise, got 96 (a thread packs the scales of 64 columns into a register); take n-tile=128; smallest accepted: n-tile=64
func.func @quantised(%a: tensor<200x256xf16>, %b: tensor<256x160xf16>, %bias: tensor<160xf32>)
    -> (tensor<200x160xf8E4M3FN>, tensor<2x2x512xf8E8M0FNU>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<200x160xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<200x160xf32>) -> tensor<200x160xf32>
  %c = linalg.matmul ins(%a, %b : tensor<200x256xf16>, tensor<256x160xf16>)
      outs(%init : tensor<200x160xf32>) -> tensor<200x160xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
      affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%c, %bias : tensor<200x160xf32>, tensor<160xf32>) outs(%empty : tensor<200x160xf32>) {
  ^bb0(%s: f32, %e: f32, %o: f32):
    %t = arith.addf %s, %e : f32
    linalg.yield %t : f32
  } -> tensor<200x160xf32>
  %q:2 = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>}
      : (tensor<200x160xf32>) -> (tensor<200x160xf8E4M3FN>, tensor<2x2x512xf8E8M0FNU>)
  return %q#0, %q#1 : tensor<200x160xf8E4M3FN>, tensor<2x2x512xf8E8M0FNU>
}
