// A CTA with several tiles of the output: rings go on from tile to tile, accumulators are used again.
// RUN: %tc-opt %S/Inputs/tiles.mlir --multi-buffer="{stages=3}" | %filecheck %s
// RUN: %tc-opt %S/Inputs/tiles.mlir --multi-buffer="{stages=3 acc-stages=1}" | %filecheck %s --check-prefix=ONE
// RUN: %tc-opt %S/Inputs/tiles.mlir --multi-buffer | %filecheck %s --check-prefix=AUTO
// RUN: %exits 3 %tc-opt %S/Inputs/tiles.mlir --multi-buffer="{acc-stages=-1}" | %filecheck %s --check-prefix=NEGATIVE
// RUN: %tc-opt %S/Inputs/tiles.mlir --multi-buffer="{stages=3}" --place-barriers | %filecheck %s --check-prefix=REUSED
// RUN: %tc-opt %S/Inputs/tiles.mlir --multi-buffer="{stages=3 acc-stages=3}" --place-barriers | %filecheck %s --check-prefix=EACH
// RUN: %tc-opt %S/Inputs/tiles.mlir --multi-buffer="{stages=3}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES

// CHECK: %[[D:.*]] = "tc.tmem_tile"(){{.*}} -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>
// CHECK: %[[A:.*]] = "tc.smem_tile"() : () -> !tc.ring<3 : i64
// CHECK: scf.for %[[T:.*]] = %c0 to %c3 step %c1 {
// CHECK: %[[SLOT:.*]] = arith.remui %[[T]], %c2
// CHECK-NEXT: "tc.slot"(%[[D]], %[[SLOT]])
// CHECK-NEXT: scf.for %[[I:.*]] = %c0 to %c2 step %c1 {
// CHECK-NEXT: %[[BEFORE:.*]] = arith.muli %[[T]], %c2
// CHECK-NEXT: %[[STEP:.*]] = arith.addi %[[BEFORE]], %[[I]]
// CHECK-NEXT: %[[STAGE:.*]] = arith.remui %[[STEP]], %c3
// CHECK-NEXT: "tc.slot"(%[[A]], %[[STAGE]])

// ONE: -> !tc.ring<1 : i64, !tc.tmem<array<i64: 128, 16>, f32>>

// Two accumulators; as many stages as k steps of all tiles.
// AUTO: -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 16>, f32>>
// AUTO: -> !tc.ring<6 : i64, !tc.smem

// NEGATIVE: expected acc-stages of at least 1, or 0 to choose, got -1

// REUSED: %[[FULL:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<3 : i64
// REUSED-NEXT: %[[EMPTY:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<3 : i64
// REUSED-NEXT: %[[DONE:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<2 : i64
// REUSED-NEXT: %[[FREE:.*]] = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.ring<2 : i64
// REUSED: scf.for %[[T:.*]] = %c0 to %c3
// REUSED: %[[SLOT:.*]] = arith.remui %[[T]], %c2
// REUSED: %[[ROUND:.*]] = arith.divui %[[T]], %c2
// REUSED-NEXT: %[[PHASE:.*]] = arith.remui %[[ROUND]], %c2
// REUSED-NEXT: %[[F:.*]] = "tc.slot"(%[[FREE]], %[[SLOT]])
// REUSED-NEXT: %[[OTHER:.*]] = arith.subi %c1, %[[PHASE]]
// REUSED-NEXT: "tc.mbarrier_wait"(%[[F]], %[[OTHER]]) {tc.for_role = "mma"}
// REUSED-NEXT: "tc.fence"() {kind = "tcgen05.after", tc.for_role = "mma"}
// REUSED-NEXT: scf.for %[[I:.*]] = %c0 to %c2
// REUSED: arith.muli %[[T]], %c2
// REUSED: arith.divui %{{.*}}, %c3
// REUSED: "tc.mma"
// REUSED-NEXT: "tc.commit"
// REUSED-NEXT: }
// REUSED-NEXT: %[[DN:.*]] = "tc.slot"(%[[DONE]], %[[SLOT]])
// REUSED-NEXT: "tc.commit"(%[[DN]]) {tc.for_role = "mma"}
// REUSED-NEXT: "tc.mbarrier_wait"(%[[DN]], %[[PHASE]]) {tc.for_role = "epilogue"}
// REUSED-NEXT: "tc.fence"() {kind = "tcgen05.after", tc.for_role = "epilogue"}
// REUSED: "tc.tmem_ld"
// REUSED-NEXT: "tc.tmem_wait"() {kind = "ld"}
// REUSED-NEXT: "tc.fence"() {kind = "tcgen05.before", tc.for_role = "epilogue"}
// REUSED-NEXT: "tc.mbarrier_arrive"(%[[F]])
// REUSED-NEXT: "tc.store_rows"
// REUSED-NEXT: }

// A slot per tile: nobody waits for the epilogue.
// EACH-NOT: tc.mbarrier_arrive
// EACH: "tc.mbarrier_wait"(%{{.*}}, %c0) {tc.for_role = "epilogue"}
// EACH-NOT: tc.mbarrier_arrive

// ROLES: kind = "producer"
// ROLES-NEXT: "tc.role"
// ROLES-NOT: tc.tmem_ld
// ROLES: "tc.mbarrier_wait"
// ROLES-NEXT: "tc.fence"() {kind = "tcgen05.after"}
// ROLES-NEXT: scf.for
// ROLES: kind = "mma"
// ROLES-NEXT: "tc.role"
// ROLES-NOT: tc.mma
// ROLES: "tc.tmem_ld"
// ROLES: "tc.fence"() {kind = "tcgen05.before"}
// ROLES-NEXT: "tc.mbarrier_arrive"
// ROLES-NEXT: "tc.store_rows"
// ROLES-NEXT: }
// ROLES: kind = "epilogue"
