// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=2}" --place-barriers | %filecheck %s
// RUN: %exits 3 %tc-opt %S/Inputs/kernel.mlir --place-barriers | %filecheck %s --check-prefix=NORING
// RUN: %exits 3 %tc-opt %S/Inputs/kernel.mlir --multi-buffer --place-barriers --place-barriers | %filecheck %s --check-prefix=TWICE

// CHECK: tc.async
// CHECK: %[[FULL:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
// CHECK-NEXT: %[[EMPTY:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64, !tc.mbarrier>
// CHECK-NEXT: %[[DONE:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
// CHECK-NEXT: "tc.fence"() {kind = "mbarrier_init"}
// CHECK-NEXT: "tc.cta_barrier"()
// CHECK-NEXT: scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK: %[[ROUND:.*]] = arith.divui %[[I]], %c2
// CHECK-NEXT: %[[PHASE:.*]] = arith.remui %[[ROUND]], %c2
// CHECK-NEXT: %[[F:.*]] = "tc.slot"(%[[FULL]], %[[SLOT:.*]])
// CHECK-NEXT: %[[E:.*]] = "tc.slot"(%[[EMPTY]], %[[SLOT]])
// CHECK-NEXT: %[[OTHER:.*]] = arith.subi %c1, %[[PHASE]]
// CHECK-NEXT: "tc.mbarrier_wait"(%[[E]], %[[OTHER]]) {tc.for_role = "producer"}
// CHECK-NEXT: "tc.mbarrier_expect_tx"(%[[F]]) {nbytes = 4608 : i64, tc.for_role = "producer"}
// CHECK-NEXT: "tc.tma_load"({{.*}}, %[[F]]) {nbytes = 4096
// CHECK-NEXT: "tc.tma_load"({{.*}}, %[[F]]) {nbytes = 512
// CHECK: "tc.mbarrier_wait"(%[[F]], %[[PHASE]]) {tc.for_role = "mma"}
// CHECK-NEXT: "tc.fence"() {kind = "tcgen05.after", tc.for_role = "mma"}
// CHECK-NEXT: "tc.cp"
// CHECK-NEXT: "tc.mma"
// CHECK-NEXT: "tc.commit"(%[[E]]) {tc.for_role = "mma"}
// CHECK-NEXT: }
// CHECK-NEXT: "tc.commit"(%[[DONE]]) {tc.for_role = "mma"}
// CHECK-NEXT: "tc.mbarrier_wait"(%[[DONE]], %c0) {tc.for_role = "epilogue"}
// CHECK-NEXT: "tc.fence"() {kind = "tcgen05.after", tc.for_role = "epilogue"}
// CHECK: "tc.tmem_ld"
// CHECK-NEXT: "tc.tmem_wait"() {kind = "ld"}
// CHECK-NEXT: "tc.store_rows"
// CHECK: "tc.fence"() {kind = "tcgen05.before", tc.for_role = "epilogue"}
// CHECK-NEXT: "tc.cta_barrier"()
// CHECK-NEXT: return

// NORING: kernel.mlir:13:5: error: expected TMA loads into a slot of a ring, got a tile without one; run multi-buffer first
// TWICE: error: expected a kernel without barriers, got one with tc.async
