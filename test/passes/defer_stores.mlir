// RUN: %tc-opt %s --target=sm_90a --fuse-epilogue --raise-to-tc --split-launches --tile-gemm="{n-tile=64 persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --defer-stores | %filecheck --check-prefix=DEFER %s
// RUN: %tc-opt %s --target=sm_90a --fuse-epilogue --raise-to-tc --split-launches --tile-gemm="{n-tile=64 persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --defer-stores --unroll-rings | %filecheck --check-prefix=UNROLL %s
// RUN: %tc-opt --pipeline='gemm{n-tile=64 stages=2}' --target=sm_90a --mlir-print-ir-after=defer-stores -o %t.mlir %s 2>&1 | %filecheck --check-prefix=ONE %s
// RUN: %tc-opt --pipeline='gemm{n-tile=64 stages=2 persistent=true ctas=2}' --target=sm_90a --emit=ptx %s | %filecheck --check-prefix=PTX %s

// A tile waits in registers, with its epilogue, and is stored in two steps of the next one, behind their products.
// DEFER: tc.block = array<i64: 384, 1, 1>
// DEFER-SAME: tc.warp_map = "wgmma-promoted"
// DEFER: "tc.warpgroup_registers"() {registers = array<i64: 240, 240, 24>}
// DEFER: "tc.role"() ({
// DEFER: }) {kind = "producer"
// DEFER: "tc.role"() ({
// DEFER: [[NONE:%.*]] = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 128, 32>, f16, "C", "mma.m16n8k16.f16">
// DEFER: [[LAST:%.*]]:4 = scf.for {{.*}} iter_args([[HELD:%.*]] = [[NONE]], [[MORE:%.*]] = {{%.*}}, [[M:%.*]] = %c0, [[N:%.*]] = %c0)
// DEFER: "tc.wgmma"
// DEFER: scf.if
// DEFER: "tc.store_fragment"([[HELD]], {{%.*}}, [[M]], [[N]])
// DEFER: "tc.wgmma_wait"
// DEFER: "tc.mbarrier_arrive"
// DEFER: "tc.wgmma"
// DEFER: scf.if
// DEFER: [[RIGHT:%.*]] = arith.addi [[N]], %c32
// DEFER: "tc.store_fragment"([[MORE]], {{%.*}}, [[M]], [[RIGHT]])

// Two more steps fetch what the epilogue reads.
// DEFER: "tc.wgmma"
// DEFER: [[R0:%.*]] = "tc.fetch_fragment"([[R:%.*]], {{%.*}}, {{%.*}}) {map = {{.*}}, operandSegmentSizes = array<i32: 1, 2>, tails = ""} : (memref<256x128xf16>, index, index) -> !tc.fragment<array<i64: 128, 32>, f16,
// DEFER: "tc.wgmma_wait"
// DEFER: "tc.wgmma"
// DEFER: [[R1:%.*]] = "tc.fetch_fragment"([[R]],
// DEFER: "tc.wgmma_wait"
// DEFER: [[SUMS:%.*]] = scf.for {{.*}} = %c4 to %c8 step %c1 iter_args
// DEFER: [[FIRST:%.*]] = "tc.fragment_part"([[SUMS]]) {first = 0 : i64}
// DEFER: [[DONE:%.*]] = "tc.fragment_epilogue"([[FIRST]],
// DEFER: "tc.element"([[R0]])
// DEFER: arith.truncf {{.*}} : f32 to f16
// DEFER: "tc.fragment_part"([[SUMS]]) {first = 32 : i64}
// DEFER: "tc.element"([[R1]])
// DEFER: scf.yield [[DONE]],
// DEFER: "tc.store_fragment"([[LAST]]#0, {{%.*}}, [[LAST]]#2, [[LAST]]#3)
// DEFER: "tc.store_fragment"([[LAST]]#1,

// What is left of the loop goes through the ring in whole laps, with a slot of its own in each step.
// UNROLL: kind = "producer"
// UNROLL: scf.for {{.*}} = %c4 to %c8 step %c2 iter_args
// UNROLL: "tc.slot"({{%.*}}, %c0)
// UNROLL: "tc.wgmma"
// UNROLL: "tc.slot"({{%.*}}, %c1)
// UNROLL: "tc.wgmma"
// UNROLL: scf.yield

// A CTA of one tile has no next one.
// ONE: tc.block = array<i64: 288, 1, 1>
// ONE-NOT: tc.fragment_part

// PTX: .reqntid 384
// PTX: setmaxnreg.inc.sync.aligned.u32 {{.*}}240;
// PTX: wgmma.wait_group.sync.aligned 0;
func.func @product(%a: tensor<256x512xf16>, %b: tensor<512x128xf16>, %r: tensor<256x128xf16>) -> tensor<256x128xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x128xf32>) -> tensor<256x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<256x512xf16>, tensor<512x128xf16>)
      outs(%init : tensor<256x128xf32>) -> tensor<256x128xf32>
  %w = arith.extf %r : tensor<256x128xf16> to tensor<256x128xf32>
  %s = arith.addf %c, %w : tensor<256x128xf32>
  %d = arith.truncf %s : tensor<256x128xf32> to tensor<256x128xf16>
  return %d : tensor<256x128xf16>
}
