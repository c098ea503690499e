// transpose-values: values of 8 bits are copied with keys innermost, for wgmma alone.
// RUN: %tc-opt %s --target=sm_90a --transpose-values | %filecheck %s
// RUN: %tc-opt %s --target=sm_100a --transpose-values | %filecheck %s --check-prefix=BOTH

// CHECK: %[[T:.*]] = "tc.repack"(%arg2) {{.*}}permutation = array<i64: 0, 1, 3, 2>{{.*}} -> tensor<1x1x64x208xf8E4M3FN>
// CHECK: %[[S:.*]] = tensor.extract_slice %[[T]][0, 0, 0, 0] [1, 1, 64, 200] [1, 1, 1, 1]
// CHECK: %[[W:.*]] = linalg.transpose ins(%[[S]]
// CHECK-SAME: permutation = [0, 1, 3, 2]
// CHECK: "tc.attention"(%arg0, %arg1, %[[W]])
// BOTH-NOT: tc.repack
func.func @f(%q: tensor<1x1x128x64xf8E4M3FN>, %k: tensor<1x1x200x64xf8E4M3FN>, %v: tensor<1x1x200x64xf8E4M3FN>) -> tensor<1x1x128x64xf16> {
  %o, %lse = "tc.attention"(%q, %k, %v) ({}) {scale = 0.125 : f32, q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"} : (tensor<1x1x128x64xf8E4M3FN>, tensor<1x1x200x64xf8E4M3FN>, tensor<1x1x200x64xf8E4M3FN>) -> (tensor<1x1x128x64xf16>, tensor<1x1x128xf32>)
  return %o : tensor<1x1x128x64xf16>
}
