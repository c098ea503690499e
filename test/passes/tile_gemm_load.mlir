// A matrix that the epilogue reads comes by TMA where results go by TMA, in 128 rows and a span of
// columns; a warp of its own loads it.
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 store=tma}" | %filecheck %s
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 store=tma}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-gemm="{n-tile=64}" | %filecheck %s --check-prefix=DIRECT

// Twice the bytes of the f16 result: two boxes of a span each.
// CHECK: tc.block = array<i64: 224, 1, 1>
// CHECK-SAME: tc.warp_map = "tcgen05-epilogue-load"
// CHECK: %[[MAP:.*]] = "tc.make_tensor_map"(%arg2) {box = array<i64: 32, 128>, {{.*}}swizzle = "128B"
// CHECK: %[[RING:.*]] = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 64>, f32, "K", "128B">>
// CHECK: a_slice = 3
// CHECK: scf.for %[[SPAN:.*]] = %c0 to %c1 step %c1 {
// CHECK: %[[TILE:.*]] = "tc.slot"(%[[RING]]
// CHECK: "tc.tma_load"(%[[MAP]], %{{.*}}, %{{.*}}, %[[TILE]]) {nbytes = 16384 : i64, {{.*}}row = 0
// CHECK: "tc.tma_load"(%[[MAP]], %{{.*}}, %{{.*}}, %[[TILE]]) {nbytes = 16384 : i64, {{.*}}row = 128
// CHECK: scf.for %[[Q:.*]] = %c0 to %c4
// CHECK: scf.for %[[INSIDE:.*]] = %c0 to %c64 step %c16 {
// CHECK: %[[SUMS:.*]] = "tc.tmem_ld"
// CHECK: %[[ROW:.*]] = arith.muli %[[Q]], %c32
// CHECK: %[[C:.*]] = "tc.load_shared"(%[[TILE]], %[[ROW]], %[[INSIDE]])
// CHECK: arith.addf %[[SUMS]], %[[C]]

// ROLES: %[[FULL:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64{{.*}} !tc.ring<2
// ROLES: "tc.mbarrier_init"() {arrivals = 128 : i64
// ROLES: kind = "mma"
// ROLES: "tc.mbarrier_wait"
// ROLES: "tc.mbarrier_expect_tx"(%{{.*}}) {nbytes = 32768 : i64}
// ROLES: "tc.tma_load"
// ROLES: kind = "epilogue_load", threads = "one", warps = array<i64: 6>
// ROLES: "tc.load_shared"
// ROLES: "tc.fence"() {kind = "proxy.async"}
// ROLES-NEXT: "tc.mbarrier_arrive"
// ROLES: "tc.tma_store"

// DIRECT-NOT: tc.load_shared
// DIRECT: "tc.load_rows"(%arg2

func.func @f(%a: tensor<300x64xf16>, %b: tensor<64x72xf16>, %c: tensor<300x72xf32>) -> tensor<300x72xf16> {
  %s = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<300x64xf16>, tensor<64x72xf16>) -> tensor<300x72xf32>
  %y = "tc.epilogue"(%s) ({
  ^bb0(%sum: f32):
    %r = "tc.element"(%c) {map = affine_map<(m, n) -> (m, n)>} : (tensor<300x72xf32>) -> f32
    %t = arith.addf %sum, %r : f32
    %h = arith.truncf %t : f32 to f16
    "tc.yield"(%h) : (f16) -> ()
  }) : (tensor<300x72xf32>) -> tensor<300x72xf16>
  return %y : tensor<300x72xf16>
}
