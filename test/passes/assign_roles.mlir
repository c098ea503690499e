// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles | %filecheck %s
// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel -o %t
// RUN: %exits 3 %tc-opt %S/Inputs/kernel.mlir --assign-roles | %filecheck %s --check-prefix=EARLY

// CHECK: "tc.cta_barrier"()
// CHECK: "tc.role"() ({
// CHECK-NEXT: ^bb0(%{{.*}}: index):
// CHECK-NEXT: scf.for
// CHECK-NOT: tc.cp
// CHECK: "tc.mbarrier_wait"({{.*}}) :
// CHECK-NEXT: "tc.mbarrier_expect_tx"
// CHECK-NEXT: "tc.tma_load"
// CHECK-NEXT: "tc.tma_load"
// CHECK-NEXT: }
// CHECK-NEXT: }) {kind = "producer", threads = "one", warps = array<i64: 4>}
// CHECK-NEXT: "tc.role"() ({
// CHECK-NEXT: ^bb0(%{{.*}}: index):
// CHECK-NEXT: scf.for
// CHECK-NOT: tc.tma_load
// CHECK: "tc.mbarrier_wait"
// CHECK-NEXT: "tc.fence"() {kind = "tcgen05.after"}
// CHECK-NEXT: "tc.cp"
// CHECK-NEXT: "tc.mma"
// CHECK-NEXT: "tc.commit"
// CHECK-NEXT: }
// CHECK-NEXT: "tc.commit"
// CHECK-NEXT: }) {kind = "mma", threads = "one", warps = array<i64: 5>}

// The loop over quarters becomes the position of the warp.
// CHECK-NEXT: "tc.role"() ({
// CHECK-NEXT: ^bb0(%[[WARP:.*]]: index):
// CHECK-NEXT: "tc.mbarrier_wait"
// CHECK-NEXT: "tc.fence"() {kind = "tcgen05.after"}
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[WARP]], %c32
// CHECK-NEXT: %[[V:.*]] = "tc.tmem_ld"(%{{.*}}, %[[WARP]], %c0)
// CHECK-NEXT: "tc.tmem_wait"() {kind = "ld"}
// CHECK-NEXT: "tc.store_rows"(%[[V]], %{{.*}}, %[[ROW]], %c0)
// CHECK-NEXT: "tc.fence"() {kind = "tcgen05.before"}
// CHECK-NEXT: }) {kind = "epilogue", threads = "warp", warps = array<i64: 0, 1, 2, 3>}
// CHECK-NEXT: "tc.cta_barrier"()
// CHECK-NEXT: "tc.tmem_dealloc"
// CHECK-NOT: tc.for_role =

// EARLY: error: expected a kernel with barriers; run place-barriers first
