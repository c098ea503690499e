// Tiles of an operand that the kernel computes of narrower numbers.
// RUN: %tc-opt %s --tile-gemm="{n-tile=32}" | %filecheck %s
// RUN: %tc-opt %s --tile-gemm="{n-tile=32}" --multi-buffer --place-barriers | %filecheck %s --check-prefix=BARRIERS
// RUN: %tc-opt %s --tile-gemm="{n-tile=32}" --multi-buffer --place-barriers --plan-memory --assign-roles | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-gemm="{n-tile=32}" --multi-buffer --place-barriers --plan-memory --assign-roles --convert-tc-to-nvvm | %filecheck %s --check-prefix=NVVM
// RUN: %tc-opt %s --target=sm_90a --tile-gemm="{n-tile=64}" --multi-buffer --place-barriers --plan-memory --assign-roles | %filecheck %s --check-prefix=WGMMA
// RUN: %exits 3 %tc-opt %s --tile-gemm="{n-tile=48}" | %filecheck %s --check-prefix=WARPS
// RUN: %exits 3 %tc-opt %s --target=sm_90a --tile-gemm="{n-tile=48}" | %filecheck %s --check-prefix=WARPS

// CHECK: %[[SCALES:.*]] = memref.collapse_shape %arg2
// CHECK: %[[GROUPS:.*]] = memref.expand_shape %[[SCALES]] {{.*}} into memref<96x2xf16>
// CHECK: scf.for
// CHECK: %[[A:.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
// CHECK: %[[B:.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
// CHECK: "tc.tma_load"({{.*}}, %[[A]])
// CHECK: %[[STORED:.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 32, 64>, i8, "K", "64B">
// CHECK: "tc.tma_load"({{.*}}, %[[STORED]])
// CHECK: scf.for %[[WARP:.*]] = %c0 to %c4 step %c1
// CHECK: %[[Q:.*]] = "tc.load_shared"(%[[STORED]], {{.*}} -> vector<32x16xi8>
// CHECK: %[[N:.*]] = arith.extsi %[[Q]] : vector<32x16xi8> to vector<32x16xi32>
// CHECK: %[[F:.*]] = arith.sitofp %[[N]] : vector<32x16xi32> to vector<32x16xf16>
// CHECK: %[[S:.*]] = "tc.load_rows"(%[[GROUPS]], {{.*}} row_dim = 0 : i64
// CHECK: %[[W:.*]] = arith.mulf %[[F]], %[[S]] : vector<32x16xf16>
// CHECK: "tc.store_shared"(%[[W]], %[[B]]
// CHECK: tc.by_warp
// CHECK: "tc.mma"({{.*}}, %[[A]], %[[B]]

// BARRIERS-DAG: %[[FULL:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
// BARRIERS-DAG: %[[READY:.*]] = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
// BARRIERS: "tc.mbarrier_wait"({{.*}}) {tc.for_role = "epilogue"}
// BARRIERS: %[[BAR:.*]] = "tc.slot"(%[[READY]]
// BARRIERS: "tc.store_shared"
// BARRIERS: "tc.fence"() {kind = "proxy.async", tc.for_role = "epilogue"}
// BARRIERS-NEXT: "tc.mbarrier_arrive"(%[[BAR]]) {tc.for_role = "epilogue"}
// BARRIERS: "tc.mbarrier_wait"(%[[BAR]], {{.*}}) {tc.for_role = "mma"}
// BARRIERS: "tc.mma"

// ROLES: "tc.role"()
// ROLES: "tc.tma_load"
// ROLES: kind = "producer"
// ROLES: "tc.role"()
// ROLES-NOT: "tc.store_shared"
// ROLES: kind = "mma"
// ROLES: "tc.role"()
// ROLES: "tc.store_shared"
// ROLES: "tc.tmem_ld"
// ROLES: kind = "epilogue"

// NVVM: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// NVVM: arith.shrsi
// NVVM: arith.sitofp {{.*}} : vector<16xi32> to vector<16xf16>
// NVVM: nvvm.fence.proxy

// WGMMA: tc.block = array<i64: 416, 1, 1>
// WGMMA-SAME: tc.warp_map = "wgmma-computed"
// WGMMA: "tc.tma_load"
// WGMMA: kind = "producer"{{.*}} warps = array<i64: 12>
// WGMMA: "tc.store_shared"
// WGMMA: kind = "epilogue"{{.*}} warps = array<i64: 8, 9, 10, 11>
// WGMMA: "tc.mbarrier_wait"
// WGMMA: "tc.mbarrier_wait"
// WGMMA: "tc.wgmma"
// WGMMA: kind = "consumer"

// WARPS: expected n-tile to be a multiple of 32 where four warps compute a tile of B, got 48: each converts 32 rows of 16 bytes at a time; take n-tile=64
#all = affine_map<(n, g, k) -> (n, g, k)>
#group = affine_map<(n, g, k) -> (n, g, 0)>
func.func @f(%x: tensor<128x128xf16>, %w: tensor<96x128xi8>, %s: tensor<96x2x1xf16>) -> tensor<128x96xf32> {
  %w3 = tensor.expand_shape %w [[0], [1, 2]] output_shape [96, 2, 64] : tensor<96x128xi8> into tensor<96x2x64xi8>
  %e = tensor.empty() : tensor<96x2x64xf16>
  %f3 = linalg.generic {indexing_maps = [#all, #group, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w3, %s : tensor<96x2x64xi8>, tensor<96x2x1xf16>) outs(%e : tensor<96x2x64xf16>) {
  ^bb0(%q: i8, %by: f16, %o: f16):
    %n = arith.sitofp %q : i8 to f16
    %m = arith.mulf %n, %by : f16
    linalg.yield %m : f16
  } -> tensor<96x2x64xf16>
  %f = tensor.collapse_shape %f3 [[0], [1, 2]] : tensor<96x2x64xf16> into tensor<96x128xf16>
  %y = "tc.matmul"(%x, %f) {a_layout = "mk", b_layout = "nk"} : (tensor<128x128xf16>, tensor<96x128xf16>) -> tensor<128x96xf32>
  return %y : tensor<128x96xf32>
}
