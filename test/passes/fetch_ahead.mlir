// RUN: %tc-opt %s --target=sm_90a --fuse-epilogue --raise-to-tc --split-launches --tile-conv-implicit-gemm --multi-buffer="{stages=4}" --place-barriers --plan-memory --assign-roles --fetch-ahead | %filecheck %s
// RUN: %exits 3 %tc-opt %s --target=sm_90a --fetch-ahead 2>&1 | %filecheck --check-prefix=EARLY %s

// The bias comes in front of the loop over K, the residual, of which each row has its own, behind it.
// CHECK: kind = "producer"
// CHECK: [[BIAS:%.*]] = "tc.fetch_fragment"(%arg2, {{.*}} -> !tc.fragment<array<i64: 64, 16>, f32, "C"
// CHECK: [[SUMS:%.*]] = scf.for
// CHECK: "tc.wgmma"
// CHECK: scf.yield
// CHECK-NOT: tc.fetch_fragment
// CHECK: "tc.fragment_epilogue"([[SUMS]],
// CHECK: "tc.element"([[BIAS]])
// CHECK: "tc.element"({{%.*}}) {{.*}} (memref<96x32xf16>) -> f16

// EARLY: fetch-ahead expected a function with the attribute tc.kernel, got none; run assign-roles first
#all = affine_map<(n, p, q, k) -> (n, p, q, k)>
#channel = affine_map<(n, p, q, k) -> (k)>
func.func @conv(%x: tensor<1x10x14x32xf16>, %w: tensor<3x3x32x32xf16>, %bias: tensor<32xf32>, %residual: tensor<1x8x12x32xf16>) -> tensor<1x8x12x32xf16> {
  %f0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x12x32xf32>
  %z = linalg.fill ins(%f0 : f32) outs(%e : tensor<1x8x12x32xf32>) -> tensor<1x8x12x32xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
      ins(%x, %w : tensor<1x10x14x32xf16>, tensor<3x3x32x32xf16>) outs(%z : tensor<1x8x12x32xf32>) -> tensor<1x8x12x32xf32>
  %o = tensor.empty() : tensor<1x8x12x32xf16>
  %out = linalg.generic {indexing_maps = [#all, #channel, #all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y, %bias, %residual : tensor<1x8x12x32xf32>, tensor<32xf32>, tensor<1x8x12x32xf16>) outs(%o : tensor<1x8x12x32xf16>) {
  ^bb0(%s: f32, %b: f32, %r: f16, %old: f16):
    %t = arith.addf %s, %b : f32
    %u = arith.extf %r : f16 to f32
    %v = arith.addf %t, %u : f32
    %q = arith.truncf %v : f32 to f16
    linalg.yield %q : f16
  } -> tensor<1x8x12x32xf16>
  return %out : tensor<1x8x12x32xf16>
}
