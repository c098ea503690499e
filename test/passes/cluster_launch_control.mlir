// Cluster launch control: the loop of each role goes on with CTAs that have not been launched.
// RUN: %tc-opt %s --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --cluster-launch-control --verify-tc-kernel | %filecheck %s
// RUN: %tc-opt %s --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --cluster-launch-control --convert-tc-to-nvvm | %filecheck %s --check-prefix=NVVM
// RUN: %exits 3 %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --cluster-launch-control | %filecheck %s --check-prefix=STATIC
// RUN: %exits 3 %tc-opt %s --multi-buffer="{stages=2}" --place-barriers --plan-memory --cluster-launch-control | %filecheck %s --check-prefix=EARLY

// CHECK: %[[R:.*]] = "tc.launch_responses"() {count = 2 : i64, offset = {{.*}} : i64} : () -> !tc.launch_response_table
// CHECK-NEXT: %[[FULL:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = {{.*}} : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
// CHECK-NEXT: %[[EMPTY:.*]] = "tc.mbarrier_init"() {arrivals = 129 : i64, offset = {{.*}} : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
// CHECK-NEXT: "tc.fence"() {kind = "mbarrier_init"}

// CHECK: %[[OWN:.*]] = gpu.block_id{{ *}}x
// CHECK-NEXT: scf.while (%{{.*}} = %c0, %{{.*}} = %[[OWN]], %[[MORE:.*]] = %true)
// CHECK-NEXT: scf.condition(%{{.*}})
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%[[TURN:.*]]: index, %[[CTA:.*]]: index):
// CHECK-NEXT: %[[SLOT:.*]] = arith.remui %[[TURN]], %c2
// CHECK-NEXT: %[[ROUND:.*]] = arith.divui %[[TURN]], %c2
// CHECK-NEXT: %[[PHASE:.*]] = arith.remui %[[ROUND]], %c2
// CHECK-NEXT: %[[F:.*]] = "tc.slot"(%[[FULL]], %[[SLOT]])
// CHECK-NEXT: %[[E:.*]] = "tc.slot"(%[[EMPTY]], %[[SLOT]])
// CHECK-NEXT: %[[OTHER:.*]] = arith.subi %c1, %[[PHASE]]
// CHECK-NEXT: "tc.mbarrier_wait"(%[[E]], %[[OTHER]])
// CHECK-NEXT: "tc.mbarrier_expect_tx"(%[[F]]) {nbytes = 16 : i64}
// CHECK-NEXT: "tc.launch_request"(%[[R]], %[[SLOT]], %[[F]])
// CHECK-NEXT: arith.muli %[[CTA]], %c128
// CHECK: "tc.tma_load"
// CHECK: "tc.mbarrier_wait"(%[[F]], %[[PHASE]])
// CHECK-NEXT: %[[Q:.*]]:2 = "tc.launch_query"(%[[R]], %[[SLOT]])
// CHECK-NEXT: "tc.fence"() {kind = "proxy.async"}
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[TURN]], %c1
// CHECK-NEXT: scf.yield %[[NEXT]], %[[Q]]#1, %[[Q]]#0
// CHECK: }) {kind = "producer"
// CHECK: scf.while
// CHECK-NOT: tc.launch_request
// CHECK: "tc.mma"
// CHECK: "tc.launch_query"
// CHECK-NEXT: "tc.fence"() {kind = "proxy.async"}
// CHECK-NEXT: "tc.mbarrier_arrive"
// CHECK: }) {kind = "mma"
// CHECK: scf.while
// CHECK: "tc.store_rows"
// CHECK: "tc.launch_query"
// CHECK-NEXT: "tc.fence"() {kind = "proxy.async"}
// CHECK-NEXT: "tc.mbarrier_arrive"
// CHECK: }) {kind = "epilogue"

// NVVM: scf.while
// NVVM: clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [$0], [$1];
// NVVM: clusterlaunchcontrol.query_cancel.is_canceled.pred.b128

// STATIC: error: expected one loop with tc.most_trips and no carried values in the role, got 0; tile with scheduler=clc
// EARLY: error: expected a kernel with a role of kind producer, got none; run assign-roles first

func.func @k(%a: memref<384x32xf16>, %b: memref<16x32xf16>, %c: memref<384x16xf32>) attributes {tc.kernel, tc.grid = array<i64: 3, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %map_a = "tc.make_tensor_map"(%a) {mode = "tiled", dims = array<i64: 32, 384>, strides = array<i64: 64>, box = array<i64: 16, 128>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<384x32xf16>) -> !tc.tensor_map
  %map_b = "tc.make_tensor_map"(%b) {mode = "tiled", dims = array<i64: 32, 16>, strides = array<i64: 64>, box = array<i64: 16, 16>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "32B"} : (memref<16x32xf16>) -> !tc.tensor_map
  scf.for %t = %c0 to %c1 step %c1 {
    %cta = gpu.block_id x
    %m0 = arith.muli %cta, %c128 : index
    %d = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f32>
    scf.for %i = %c0 to %c2 step %c1 {
      %ta = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 16>, f16, "K", "32B">
      %tb = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
      %k = arith.muli %i, %c16 : index
      "tc.tma_load"(%map_a, %k, %m0, %ta) {row = 0 : i64, nbytes = 4096 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">) -> ()
      "tc.tma_load"(%map_b, %k, %c0, %tb) {row = 0 : i64, nbytes = 512 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">) -> ()
      %next = arith.cmpi ne, %i, %c0 : index
      "tc.mma"(%d, %ta, %tb, %next) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = false} : (!tc.tmem<array<i64: 128, 16>, f32>, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">, !tc.smem<array<i64: 16, 16>, f16, "K", "32B">, i1) -> ()
    }
    scf.for %q = %c0 to %c4 step %c1 {
      %first = arith.muli %q, %c32 : index
      %row = arith.addi %m0, %first : index
      %v = "tc.tmem_ld"(%d, %q, %c0) : (!tc.tmem<array<i64: 128, 16>, f32>, index, index) -> vector<32x16xf32>
      "tc.store_rows"(%v, %c, %row, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf32>, memref<384x16xf32>, index, index) -> ()
    }
  } {tc.most_trips = 3 : i64}
  return
}
