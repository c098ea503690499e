// How many warps each role has.
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 epilogue-warps=8}" | %filecheck %s --check-prefix=EIGHT
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 epilogue-warps=12 consumer-warps=1}" | %filecheck %s --check-prefix=TWELVE
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 epilogue-warps=4 producer-warps=1}" | %filecheck %s --check-prefix=FOUR
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 store=tma producer-warps=1}" | %filecheck %s --check-prefix=ONE
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 store=tma producer-warps=2}" | %filecheck %s --check-prefix=TWO
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 epilogue-warps=12}" 2>&1 >/dev/null | %filecheck %s --check-prefix=SAID
// RUN: %exits 3 %tc-opt %s --tile-gemm="{epilogue-warps=2}" | %filecheck %s --check-prefix=LANES
// RUN: %exits 3 %tc-opt %s --tile-gemm="{producer-warps=4}" | %filecheck %s --check-prefix=BOXES
// RUN: %exits 3 %tc-opt %s --tile-gemm="{consumer-warps=4}" | %filecheck %s --check-prefix=ISSUES
// RUN: %exits 3 %tc-opt %s --tile-gemm="{consumer-warps=8}" | %filecheck %s --check-prefix=WGMMA
// RUN: %exits 3 %tc-opt %s --tile-gemm="{producer-warps=2}" | %filecheck %s --check-prefix=NOTHING
// RUN: %exits 3 %tc-opt %s --tile-gemm="{epilogue-warps=8 store=tma}" | %filecheck %s --check-prefix=GROUPS

// EIGHT: tc.block = array<i64: 384, 1, 1>
// EIGHT-SAME: tc.warp_map = "tcgen05-epilogue8"
// TWELVE: tc.block = array<i64: 512, 1, 1>
// TWELVE-SAME: tc.warp_map = "tcgen05-epilogue12"
// FOUR: tc.block = array<i64: 192, 1, 1>
// FOUR-SAME: tc.warp_map = "tcgen05"
// ONE: tc.warp_map = "tcgen05"
// ONE: "tc.load_rows"(%arg2
// ONE: "tc.tma_store"
// TWO: tc.warp_map = "tcgen05-epilogue-load"
// TWO: "tc.load_shared"
// SAID: remark: warps by role: producer 1 (warp 12), mma 1 (warp 13), epilogue 12 (warps 0 to 11) (warp map tcgen05-epilogue12)
// LANES: expected epilogue-warps to be one of 4, 8, 12, or 0 to choose, got 2 (warp w reads lanes 32 * (w mod 4) to + 31 of tensor memory, PTX ISA 9.7.16.8, so all 128 take whole warpgroups; with four a thread would have fewer registers than the 128 columns that it may load); take epilogue-warps=4
// BOXES: expected producer-warps to be one of 1, 2, or 0 to choose, got 4 (one thread keeps TMA busy, which copies whole boxes by itself; a second warp loads the matrices that the epilogue reads); take producer-warps=1
// ISSUES: expected consumer-warps to be one of 1, 8, or 0 to choose, got 4 (tcgen05.mma is an instruction of one thread, wgmma of whole warpgroups, each of which multiplies 64 of a tile's 128 rows); take consumer-warps=1
// WGMMA: error: expected consumer-warps=1 for sm_100a, got 8: {{.*}}; leave it out, or take target sm_90a
// NOTHING: error: expected producer-warps=1, got 2: with store=tma a second producer warp loads the matrices that the epilogue reads, and this kernel has none that TMA can load; leave it out
// GROUPS: expected epilogue-warps=4 with store=tma, got 8: the buffers in shared memory belong to the warps of one warpgroup, and only the thread that stores a buffer can wait until it is free; take store=direct
func.func @f(%a: tensor<40x24xf16>, %b: tensor<64x24xf16>, %c: tensor<40x64xf32>) -> tensor<40x64xf32> {
  %s = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x24xf16>, tensor<64x24xf16>) -> tensor<40x64xf32>
  %y = "tc.epilogue"(%s) ({
  ^bb0(%sum: f32):
    %r = "tc.element"(%c) {map = affine_map<(m, n) -> (m, n)>} : (tensor<40x64xf32>) -> f32
    %t = arith.addf %sum, %r : f32
    "tc.yield"(%t) : (f32) -> ()
  }) : (tensor<40x64xf32>) -> tensor<40x64xf32>
  return %y : tensor<40x64xf32>
}
