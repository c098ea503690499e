// CTA pairs from tile-gemm to threads: who loads what, who issues, whose barriers.
// RUN: %tc-opt %s --tile-gemm="{cta-group=2}" | %filecheck %s --check-prefix=TILE
// RUN: %tc-opt %s --tile-gemm="{cta-group=2}" --multi-buffer="{stages=2}" --place-barriers | %filecheck %s --check-prefix=BARRIERS
// RUN: %tc-opt %s --tile-gemm="{cta-group=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-gemm="{cta-group=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --convert-tc-to-nvvm | %filecheck %s --check-prefix=NVVM
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cta-group=2 n-tile=48}" | %filecheck %s --check-prefix=N48
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cta-group=4}" | %filecheck %s --check-prefix=FOUR
// RUN: %exits 3 %tc-opt %s --tile-gemm="{cta-group=2 persistent=true ctas=3}" | %filecheck %s --check-prefix=THREE
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 persistent=true scheduler=clc}" | %filecheck %s --check-prefix=CLC
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 persistent=true scheduler=clc}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --cluster-launch-control --verify-tc-kernel | %filecheck %s --check-prefix=TAKEN
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 persistent=true scheduler=clc}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --cluster-launch-control --convert-tc-to-nvvm | %filecheck %s --check-prefix=CANCEL
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=PERSISTENT
// RUN: %tc-opt %s --tile-gemm="{cta-group=2 persistent=true ctas=2}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --convert-tc-to-nvvm | %filecheck %s --check-prefix=MAPA
// THREE: expected ctas to be a multiple of cta-group=2, got 3: the CTAs of a pair compute tiles together; take ctas=4
// N48: error: expected n-tile to be a multiple of 32 in [32, 256], got 48 (N of tcgen05.mma.kind::f16 with M = 256, PTX ISA 9.7.16.2, table 39); take 32 or 64, or 0 to choose
// FOUR: expected cta-group to be 1 or 2, the CTAs that an mma acts on (PTX ISA 9.7.16.5), got 4; smallest accepted: cta-group=1

// Three tiles of 128 rows: two pairs, the last CTA has none. Each loads half of B's 256 columns.
// TILE-LABEL: func.func @plain(
// TILE-SAME: tc.cluster = array<i64: 2, 1, 1>, tc.grid = array<i64: 4, 2, 1>
// TILE: %[[ROW:.*]] = arith.muli %block_id_x, %c128
// TILE: %[[COLUMN:.*]] = arith.muli %block_id_y, %c256
// TILE: %[[RANK:.*]] = "tc.cta_rank"()
// TILE: %[[HALF:.*]] = arith.muli %[[RANK]], %c128
// TILE: %[[MINE:.*]] = arith.addi %[[COLUMN]], %[[HALF]]
// TILE: "tc.tmem_tile"() {{.*}}!tc.tmem<array<i64: 128, 256>, f32>
// TILE: "tc.tma_load"(%{{.*}}, %{{.*}}, %[[ROW]], {{.*}}!tc.smem<array<i64: 128, 64>, f16, "K", "128B">
// TILE: "tc.tma_load"(%{{.*}}, %{{.*}}, %[[MINE]], {{.*}}!tc.smem<array<i64: 128, 64>, f16, "K", "128B">
// TILE-COUNT-4: "tc.mma"{{.*}}cta_group = 2 : i64

// The leader's barrier counts the bytes of both; its commits arrive on the barriers of both.
// BARRIERS: "tc.fence"() {kind = "mbarrier_init"}
// BARRIERS-NEXT: "tc.cluster_barrier"()
// BARRIERS: "tc.mbarrier_wait"({{.*}}) {tc.for_role = "producer"}
// BARRIERS-NEXT: "tc.mbarrier_expect_tx"({{.*}}) {leader, nbytes = 65536 : i64, tc.for_role = "producer"}
// BARRIERS-NEXT: "tc.tma_load"({{.*}}) {cta_group = 2 : i64, nbytes = 16384 : i64
// BARRIERS-NEXT: "tc.tma_load"({{.*}}) {cta_group = 2 : i64, nbytes = 16384 : i64
// BARRIERS-NEXT: "tc.mbarrier_wait"({{.*}}) {leader, tc.for_role = "mma"}
// BARRIERS-NEXT: "tc.fence"() {kind = "tcgen05.after", leader, tc.for_role = "mma"}
// BARRIERS-COUNT-4: "tc.mma"{{.*}}cta_group = 2 : i64, leader
// BARRIERS-NEXT: "tc.commit"(%{{.*}}) {cta_group = 2 : i64, cta_mask = 3 : i64, leader, tc.for_role = "mma"}
// BARRIERS: "tc.commit"(%{{.*}}) {cta_group = 2 : i64, cta_mask = 3 : i64, leader, tc.for_role = "mma"}
// BARRIERS-NEXT: "tc.mbarrier_wait"(%{{.*}}, %c0) {tc.for_role = "epilogue"}
// BARRIERS: "tc.cluster_barrier"()
// BARRIERS-NEXT: return

// ROLES: "tc.tmem_alloc"() {{.*}}cta_group = 2 : i64
// ROLES-NEXT: "tc.tmem_relinquish"() {cta_group = 2 : i64
// ROLES-NEXT: "tc.cluster_barrier"()
// ROLES: "tc.mbarrier_expect_tx"(%{{.*}}) {leader, nbytes = 65536 : i64}
// ROLES: }) {kind = "producer", threads = "one", warps = array<i64: 4>}
// ROLES-NOT: leader}
// ROLES: }) {kind = "mma", leader, threads = "one", warps = array<i64: 5>}
// ROLES-NOT: leader}
// ROLES: }) {kind = "epilogue", threads = "warp", warps = array<i64: 0, 1, 2, 3>}
// ROLES-NEXT: "tc.cluster_barrier"()
// ROLES-NEXT: "tc.tmem_dealloc"(%{{.*}}) {columns = 256 : i64, cta_group = 2 : i64

// NVVM: nvvm.cluster_dim = array<i32: 2, 1, 1>
// NVVM: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// NVVM: %[[ODD:.*]] = arith.andi %[[RANK]], %c1_i32
// NVVM: %[[LEADER:.*]] = arith.cmpi eq, %[[ODD]], %c0_i32
// NVVM: nvvm.tcgen05.alloc {{.*}}cta_2
// NVVM: nvvm.tcgen05.relinquish_alloc_permit {group = #nvvm.cta_group<cta_2>}
// NVVM: nvvm.cluster.arrive {aligned}
// NVVM-NEXT: nvvm.cluster.wait {aligned}
// NVVM: scf.if %[[LEADER]] {
// NVVM: nvvm.mbarrier.arrive.expect_tx

// A shared address without bit 24 is one of the leader's.
// NVVM: %[[FULL:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
// NVVM-NEXT: %[[EVEN:.*]] = arith.andi %[[FULL]], %c-16777217_i32
// NVVM-NEXT: %[[BAR:.*]] = llvm.inttoptr %[[EVEN]] : i32 to !llvm.ptr<3>
// NVVM: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %[[BAR]], {{.*}}cta_2
// NVVM: %[[WARP:.*]] = arith.cmpi eq
// NVVM-NEXT: %[[ISSUES:.*]] = arith.andi %[[WARP]], %[[LEADER]]
// NVVM-NEXT: scf.if %[[ISSUES]]
// NVVM: nvvm.tcgen05.mma {{.*}}cta_2
// NVVM: nvvm.tcgen05.commit %{{.*}}, multicast_mask = %c3_i16 {group = #nvvm.cta_group<cta_2>}
// NVVM: nvvm.cluster.wait
// NVVM: nvvm.tcgen05.dealloc {{.*}}cta_2

// Four pairs of tiles by one pair of CTAs. The epilogues of both release an accumulator, at the
// leader.
// PERSISTENT-LABEL: func.func @plain(
// PERSISTENT-SAME: tc.grid = array<i64: 2, 1, 1>
// PERSISTENT: %[[FREE:.*]] = "tc.mbarrier_init"() {arrivals = 256 : i64
// PERSISTENT: %[[RANK:.*]] = "tc.cta_rank"()
// PERSISTENT: arith.addi %{{.*}}, %[[RANK]]
// PERSISTENT: kind = "producer"
// PERSISTENT: %[[SLOT:.*]] = "tc.slot"(%[[FREE]],
// PERSISTENT: "tc.mbarrier_wait"(%[[SLOT]], %{{.*}}) {cta_group = 2 : i64}
// PERSISTENT: "tc.mma"
// PERSISTENT: kind = "mma", leader
// PERSISTENT: "tc.tmem_ld"
// PERSISTENT: "tc.fence"() {kind = "tcgen05.before"}
// PERSISTENT-NEXT: "tc.mbarrier_arrive"(%{{.*}}) {cta_group = 2 : i64}

// MAPA: nvvm.mbarrier.try_wait {{.*}}scope = #nvvm.mem_scope<cluster>
// MAPA: %[[THERE:.*]] = nvvm.mapa %{{.*}}, %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// MAPA-NEXT: nvvm.mbarrier.arrive %[[THERE]] {{.*}}scope = #nvvm.mem_scope<cluster>

// Pairs of CTAs for four pairs of tiles, of which a pair may take over the others.
// CLC: tc.cluster = array<i64: 2, 1, 1>
// CLC-SAME: tc.grid = array<i64: 8, 1, 1>
// CLC: scf.for %{{.*}} = %c0 to %c1 step %c1 {
// CLC-NEXT: %[[CTA:.*]] = gpu.block_id x
// CLC-NEXT: %[[PAIR:.*]] = arith.divui %[[CTA]], %c2
// CLC: %[[RANK:.*]] = "tc.cta_rank"()
// CLC: } {tc.most_trips = 4 : i64}

// The leader asks, both CTAs expect the response, all roles of both release it at the leader.
// TAKEN: "tc.launch_responses"
// TAKEN-NEXT: %[[FULL:.*]] = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = {{.*}}<2 : i64, !tc.mbarrier>
// TAKEN-NEXT: %[[EMPTY:.*]] = "tc.mbarrier_init"() {arrivals = 259 : i64, offset
// TAKEN-NEXT: "tc.fence"() {kind = "mbarrier_init"}
// TAKEN: ^bb0(%[[TURN:.*]]: index, %[[CTA:.*]]: index):
// TAKEN: %[[F:.*]] = "tc.slot"(%[[FULL]],
// TAKEN-NEXT: %[[E:.*]] = "tc.slot"(%[[EMPTY]],
// TAKEN: "tc.mbarrier_wait"(%[[E]], %{{.*}}) {cta_group = 2 : i64, leader}
// TAKEN-NEXT: "tc.mbarrier_expect_tx"(%[[F]]) {nbytes = 16 : i64}
// TAKEN-NEXT: "tc.launch_request"(%{{.*}}, %[[F]]) {cta_group = 2 : i64, leader}
// TAKEN: "tc.mbarrier_wait"(%[[F]], %{{.*}}) {cta_group = 2 : i64}
// TAKEN-NEXT: %[[Q:.*]]:2 = "tc.launch_query"
// TAKEN-NEXT: "tc.fence"() {kind = "proxy.async"}
// TAKEN-NEXT: "tc.mbarrier_arrive"(%[[E]]) {cta_group = 2 : i64}
// TAKEN-NEXT: %[[RANK:.*]] = "tc.cta_rank"()
// TAKEN-NEXT: %[[MINE:.*]] = arith.addi %[[Q]]#1, %[[RANK]]
// TAKEN: scf.yield %{{.*}}, %[[MINE]], %[[Q]]#0
// TAKEN: }) {kind = "producer", threads
// TAKEN: "tc.launch_query"
// TAKEN-NEXT: "tc.fence"() {kind = "proxy.async"}
// TAKEN-NEXT: "tc.mbarrier_arrive"(%{{.*}}) {cta_group = 2 : i64}
// TAKEN: }) {kind = "mma", leader
// TAKEN: "tc.launch_query"
// TAKEN-NEXT: "tc.fence"() {kind = "proxy.async"}
// TAKEN-NEXT: "tc.mbarrier_arrive"(%{{.*}}) {cta_group = 2 : i64}
// TAKEN: }) {kind = "epilogue", threads

// CANCEL: scf.if
// CANCEL: clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [$0], [$1];
func.func @plain(%a: tensor<300x128xf16>, %b: tensor<500x128xf16>) -> tensor<300x500xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<300x128xf16>, tensor<500x128xf16>) -> tensor<300x500xf32>
  return %c : tensor<300x500xf32>
}
