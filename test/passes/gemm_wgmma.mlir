// RUN: %tc-opt --pipeline='gemm{n-tile=64 stages=2}' --target=sm_90a --mlir-print-ir-after=tile-gemm -o %t.mlir %s 2>&1 | %filecheck --check-prefix=TILE %s
// RUN: %tc-opt --pipeline='gemm{n-tile=64 stages=2}' --target=sm_90a --mlir-print-ir-after=assign-roles -o %t.mlir %s 2>&1 | %filecheck --check-prefix=ROLES %s
// RUN: %tc-opt --pipeline='gemm{n-tile=64 stages=2}' --target=sm_90a --emit=ptx %s | %filecheck --check-prefix=PTX %s

// A group of instructions adds a step's tiles to registers that the loop carries.
// TILE: tc.target = "sm_90a", tc.warp_map = "wgmma", tc.warps = array<i64: 8, 1>
// TILE: [[ZERO:%.*]] = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 128, 64>, f32, "C", "mma.m16n8k16.f16">
// TILE: [[D:%.*]] = scf.for {{.*}} iter_args([[C:%.*]] = [[ZERO]])
// TILE: [[A:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
// TILE: [[B:%.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
// TILE: "tc.tma_load"({{.*}}, [[A]])
// TILE: "tc.tma_load"({{.*}}, [[B]])
// TILE: [[N:%.*]] = "tc.wgmma"([[A]], [[B]], [[C]])
// TILE: scf.yield [[N]]
// TILE: "tc.store_fragment"([[D]]

// One warp loads, two warpgroups multiply: what the loop carries is theirs.
// ROLES: "tc.mbarrier_init"() {arrivals = 1 : i64
// ROLES: "tc.mbarrier_init"() {arrivals = 8 : i64
// ROLES: "tc.role"() ({
// ROLES-NOT: iter_args
// ROLES: "tc.tma_load"
// ROLES: }) {kind = "producer", threads = "one", warps = array<i64: 8>}
// ROLES: "tc.role"() ({
// ROLES: "tc.zero_fragment"
// ROLES: scf.for {{.*}} iter_args
// ROLES: "tc.mbarrier_wait"
// ROLES: [[N:%.*]] = "tc.wgmma"
// ROLES: [[W:%.*]] = "tc.wgmma_wait"([[N]]) {pending = 0 : i64}
// ROLES: "tc.mbarrier_arrive"({{%.*}}) {once}
// ROLES: scf.yield [[W]]
// ROLES: "tc.store_fragment"
// ROLES: }) {kind = "consumer", threads = "warp", warps = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>}

// PTX: .target sm_90a
// PTX: .reqntid 288
// PTX: wgmma.fence.sync.aligned;
// PTX-COUNT-4: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
// PTX: wgmma.commit_group.sync.aligned;
// PTX: wgmma.wait_group.sync.aligned 0;
func.func @product(%a: tensor<256x256xf16>, %b: tensor<256x128xf16>) -> tensor<256x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x128xf32>) -> tensor<256x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<256x256xf16>, tensor<256x128xf16>)
      outs(%init : tensor<256x128xf32>) -> tensor<256x128xf32>
  return %c : tensor<256x128xf32>
}
