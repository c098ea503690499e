// RUN: %tc-opt %s --target=sm_90a --fuse-epilogue --raise-to-tc --split-launches --tile-gemm="{n-tile=64 persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --defer-stores | %filecheck --check-prefix=DEFER %s
// RUN: %tc-opt %s --target=sm_90a --fuse-epilogue --raise-to-tc --split-launches --tile-gemm="{n-tile=64 persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --defer-stores --unroll-rings | %filecheck --check-prefix=UNROLL %s
// RUN: %tc-opt --pipeline='gemm{n-tile=64 stages=2}' --target=sm_90a --mlir-print-ir-after=defer-stores -o %t.mlir %s 2>&1 | %filecheck --check-prefix=ONE %s
// RUN: %tc-opt --pipeline='gemm{n-tile=64 stages=2 persistent=true ctas=2}' --target=sm_90a --emit=ptx %s | %filecheck --check-prefix=PTX %s

// A tile waits in registers, rounded, and is stored in two steps of the next one, behind their products.
// DEFER: tc.block = array<i64: 384, 1, 1>
// DEFER-SAME: tc.warp_map = "wgmma-promoted"
// DEFER: "tc.warpgroup_registers"() {registers = array<i64: 232, 232, 40>}
// DEFER: "tc.role"() ({
// DEFER: }) {kind = "producer"
// DEFER: "tc.role"() ({
// DEFER: [[NONE:%.*]] = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 128, 64>, f16, "C", "mma.m16n8k16.f16">
// DEFER: [[LAST:%.*]]:3 = scf.for {{.*}} iter_args([[HELD:%.*]] = [[NONE]], [[M:%.*]] = %c0, [[N:%.*]] = %c0)
// DEFER: "tc.wgmma"
// DEFER: scf.if
// DEFER: "tc.store_fragment"([[HELD]], {{%.*}}, [[M]], [[N]]) {operandSegmentSizes = array<i32: 1, 1, 2>, part = array<i64: 0, 2>
// DEFER: "tc.wgmma_wait"
// DEFER: "tc.mbarrier_arrive"
// DEFER: "tc.wgmma"
// DEFER: part = array<i64: 1, 2>
// DEFER: [[SUMS:%.*]] = scf.for {{.*}} = %c2 to %c8 step %c1 iter_args
// DEFER: [[ROUNDED:%.*]] = "tc.fragment_epilogue"([[SUMS]],
// DEFER: arith.truncf {{.*}} : f32 to f16
// DEFER: scf.yield [[ROUNDED]],
// DEFER: "tc.store_fragment"([[LAST]]#0, {{%.*}}, [[LAST]]#1, [[LAST]]#2) {operandSegmentSizes = array<i32: 1, 1, 2>, tails = ""}

// What is left of the loop goes through the ring in whole laps, with a slot of its own in each step.
// UNROLL: kind = "producer"
// UNROLL: scf.for {{.*}} = %c2 to %c8 step %c2 iter_args
// UNROLL: "tc.slot"({{%.*}}, %c0)
// UNROLL: "tc.wgmma"
// UNROLL: "tc.slot"({{%.*}}, %c1)
// UNROLL: "tc.wgmma"
// UNROLL: scf.yield

// A CTA of one tile has no next one.
// ONE: tc.block = array<i64: 288, 1, 1>
// ONE-NOT: part =

// PTX: .reqntid 384
// PTX: setmaxnreg.inc.sync.aligned.u32 {{.*}}232;
// PTX: wgmma.wait_group.sync.aligned 0;
func.func @product(%a: tensor<256x512xf16>, %b: tensor<512x128xf16>) -> tensor<256x128xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x128xf32>) -> tensor<256x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<256x512xf16>, tensor<512x128xf16>)
      outs(%init : tensor<256x128xf32>) -> tensor<256x128xf32>
  %d = arith.truncf %c : tensor<256x128xf32> to tensor<256x128xf16>
  return %d : tensor<256x128xf16>
}
