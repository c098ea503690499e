// Who computes which tile, and how results are stored.
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 persistent=true scheduler=clc}" | %filecheck %s --check-prefix=CLC
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 store=tma}" | %filecheck %s --check-prefix=TMA
// RUN: %tc-opt %s --tile-gemm="{n-tile=48 store=tma}" | %filecheck %s --check-prefix=NARROW
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 store=tma}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=FREE
// RUN: %tc-opt %s --tile-gemm="{n-tile=48 store=tma persistent=true ctas=2}" | %filecheck %s --check-prefix=TURNS
// RUN: %tc-opt %s --tile-gemm="{n-tile=48 store=tma persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=BEHIND
// RUN: %exits 3 %tc-opt %s --tile-gemm="{store-stages=2}" | %filecheck %s --check-prefix=TILES
// RUN: %exits 3 %tc-opt %s --tile-gemm="{scheduler=clc}" | %filecheck %s --check-prefix=ALONE
// RUN: %exits 3 %tc-opt %s --tile-gemm="{store=late}" | %filecheck %s --check-prefix=STORE

// A CTA for each of six tiles, in a loop of one turn whose tile is the CTA's place in the grid.
// CLC: tc.ctas_per_sm = 1 : i64
// CLC-SAME: tc.grid = array<i64: 6, 1, 1>
// CLC: scf.for %{{.*}} = %c0 to %c1 step %c1 {
// CLC-NEXT: gpu.block_id
// CLC: "tc.mma"
// CLC: "tc.store_rows"
// CLC: } {tc.most_trips = 6 : i64}

// 64 columns of f16 are a span of 128 bytes; 48 are three of 32 bytes.
// TMA: "tc.make_tensor_map"(%arg2) {box = array<i64: 64, 32>, {{.*}}dims = array<i64: 72, 300>, {{.*}}swizzle = "128B"
// TMA: %[[RING:.*]] = "tc.smem_tile"() : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">>
// TMA: "tc.mma"({{.*}}a_slice = 3
// TMA: scf.for %[[SPAN:.*]] = %c0 to %c1 step %c1 {
// TMA: %[[FIRST:.*]] = arith.muli %[[SPAN]], %c64
// TMA: scf.for %[[Q:.*]] = %c0 to %c4
// TMA: %[[TILE:.*]] = "tc.slot"(%[[RING]], %[[Q]])
// TMA-NEXT: scf.for %[[INSIDE:.*]] = %c0 to %c64 step %c16 {
// TMA: %[[COLUMN:.*]] = arith.addi %[[FIRST]], %[[INSIDE]]
// TMA: %[[SUMS:.*]] = "tc.tmem_ld"(%{{.*}}, %[[Q]], %[[COLUMN]])
// TMA: %[[V:.*]] = arith.truncf %[[SUMS]]
// TMA-NEXT: "tc.store_shared"(%[[V]], %[[TILE]], %c0, %[[INSIDE]])
// TMA: }
// TMA: "tc.tma_store"(%{{.*}}, %{{.*}}, %{{.*}}, %[[TILE]])
// TMA-NOT: tc.store_rows
// NARROW: box = array<i64: 16, 32>
// NARROW-SAME: swizzle = "32B"
// NARROW: scf.for %{{.*}} = %c0 to %c3 step %c1 {

// ROLES: kind = "mma"
// ROLES: "tc.bulk_wait"() {pending = 0 : i64, read = true}
// ROLES-NEXT: "tc.warp_barrier"()
// ROLES-NEXT: scf.for
// ROLES: "tc.store_shared"
// ROLES: "tc.fence"() {kind = "proxy.async"}
// ROLES-NEXT: "tc.warp_barrier"()
// ROLES-NEXT: "tc.tma_store"
// ROLES-NEXT: "tc.bulk_commit"()
// ROLES-NEXT: }
// ROLES-NEXT: "tc.bulk_wait"() {pending = 0 : i64, read = true}

// Three spans of 32 bytes in two tiles of a warp, which takes them in turn over its tiles of D: it
// writes one while TMA reads the other.
// TURNS: "tc.smem_tile"() : () -> !tc.ring<8 : i64, !tc.smem<array<i64: 32, 16>, f16, "K", "32B">>
// TURNS: scf.for %[[T:.*]] = %c0 to %c3 step %c1 {
// TURNS: %[[DONE:.*]] = arith.muli %[[T]], %c3
// TURNS: scf.for %[[SPAN:.*]] = %c0 to %c3 step %c1 {
// TURNS: %[[NUMBER:.*]] = arith.addi %[[DONE]], %[[SPAN]]
// TURNS: %[[TURN:.*]] = arith.remui %[[NUMBER]], %c2
// TURNS: scf.for %[[Q:.*]] = %c0 to %c4
// TURNS: %[[MINE:.*]] = arith.muli %[[Q]], %c2
// TURNS: %[[PLACE:.*]] = arith.addi %[[MINE]], %[[TURN]]
// TURNS: "tc.slot"(%{{.*}}, %[[PLACE]])
// BEHIND: kind = "mma"
// BEHIND: "tc.bulk_wait"() {pending = 1 : i64, read = true}
// BEHIND: "tc.store_shared"
// BEHIND: "tc.bulk_commit"()
// BEHIND: "tc.bulk_wait"() {pending = 0 : i64, read = true}

// The accumulator is free once its last columns are in registers, before they are stored.
// FREE: kind = "mma"
// FREE: scf.for %[[C:.*]] = %c0 to %c64 step %c16 {
// FREE: "tc.tmem_ld"(%{{.*}}, %{{.*}}, %[[C]])
// FREE-NEXT: "tc.tmem_wait"() {kind = "ld"}
// FREE-NEXT: %[[LAST:.*]] = arith.cmpi eq, %[[C]], %c48
// FREE-NEXT: scf.if %[[LAST]] {
// FREE-NEXT: "tc.fence"() {kind = "tcgen05.before"}
// FREE-NEXT: "tc.mbarrier_arrive"
// FREE-NEXT: }
// FREE: "tc.store_rows"

// ALONE: expected persistent=true with scheduler=clc, got false
// TILES: expected store-stages=0 with store=direct, got 2: threads store from registers, without buffers in shared memory; leave it out, or take store=tma
// STORE: expected store to be one of direct, tma, got late

func.func @f(%a: tensor<300x64xf16>, %b: tensor<64x72xf16>) -> tensor<300x72xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<300x64xf16>, tensor<64x72xf16>) -> tensor<300x72xf16>
  return %c : tensor<300x72xf16>
}
