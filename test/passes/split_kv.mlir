// split-kv: attention of parts of the keys, and what combines them.
// RUN: %tc-opt %s --target=sm_90a --split-kv="{parts=3}" | %filecheck %s
// RUN: %tc-opt %s --target=sm_90a --split-kv="{parts=1}" | %filecheck %s --check-prefix=ONE
// RUN: %tc-opt %s --target=sm_90a --split-kv="{parts=3 keys=48}" | %filecheck %s --check-prefix=KEYS
// RUN: %tc-opt %s --target=sm_90a --split-kv="{parts=3}" 2>&1 | %filecheck %s --check-prefix=REMARK
// RUN: %tc-opt %s --target=sm_90a --split-kv="{parts=3}" --split-launches --convert-to-simt | %filecheck %s --check-prefix=SIMT

// 600 keys are five blocks: parts of 256, 256 and 88. The body is that of each part.
// CHECK: %[[P:.*]]:2 = "tc.attention"(%arg0, %arg1, %arg2) ({
// CHECK: "tc.element"(%arg3)
// CHECK: }) {{.*}}key_part = 256 : i64
// CHECK-SAME: -> (tensor<3x1x2x1x64xf32>, tensor<3x1x2x1xf32>)
// CHECK: %[[O:.*]]:2 = "tc.combine_parts"(%[[P]]#0, %[[P]]#1) {layout = "bhmd"}
// CHECK: return %[[O]]#0
// ONE-NOT: key_part
// KEYS: key_part = 240 : i64
// REMARK: remark: the keys are divided into 3 parts of 256: 3 times as many CTAs, and a workspace of 1560 bytes that is written and read once

// A launch has the mask; the other reads the parts, four elements a thread.
// SIMT: func.func @f_part0(%{{.*}}: tensor<1x2x1x64xf16>, %{{.*}}: tensor<1x1x600x64xf16>, %{{.*}}: tensor<1x1x600x64xf16>, %{{.*}}: tensor<1x1x1x600xi1>)
// SIMT-SAME: tc.args = array<i64: 0, 1, 2, 3, 5, 6>, tc.order = 0
// SIMT: llvm.func @f(
// SIMT-SAME: tc.grid = array<i64: 1, 1, 1>, tc.order = 1
// SIMT: arith.cmpi ult, %{{.*}}, %c32
// SIMT-COUNT-2: arith.maxnumf
// SIMT-COUNT-3: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// SIMT: rcp.approx.ftz.f32
#keys = affine_map<(b, h, m, n) -> (0, 0, 0, n)>
func.func @f(%q: tensor<1x2x1x64xf16>, %k: tensor<1x1x600x64xf16>, %v: tensor<1x1x600x64xf16>, %mask: tensor<1x1x1x600xi1>) -> tensor<1x2x1x64xf16> {
  %o, %lse = "tc.attention"(%q, %k, %v) ({
  ^bb0(%sum: f32):
    %none = arith.constant 0xFF800000 : f32
    %kept = "tc.element"(%mask) {map = #keys} : (tensor<1x1x1x600xi1>) -> i1
    %masked = arith.select %kept, %sum, %none : f32
    "tc.yield"(%masked) : (f32) -> ()
  }) {scale = 0.125 : f32, q_layout = "bhmd", kv_layout = "bhnd", out_layout = "bhmd"} : (tensor<1x2x1x64xf16>, tensor<1x1x600x64xf16>, tensor<1x1x600x64xf16>) -> (tensor<1x2x1x64xf16>, tensor<1x2x1xf32>)
  return %o : tensor<1x2x1x64xf16>
}
