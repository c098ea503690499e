// What the epilogue loads, stages and stores at a time.
// RUN: %tc-opt %s --tile-gemm="{n-tile=128 epilogue-tile=128x64}" | %filecheck %s --check-prefix=DIRECT
// RUN: %tc-opt %s --tile-gemm="{n-tile=128 store=tma epilogue-tile=64x64}" | %filecheck %s --check-prefix=SHARED
// RUN: %tc-opt %s --tile-gemm="{n-tile=128 store=tma epilogue-tile=128x64 persistent=true ctas=2}" | %filecheck %s --check-prefix=WHOLE
// RUN: %tc-opt %s --tile-gemm="{n-tile=128 store=tma epilogue-tile=64x64}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-gemm="{n-tile=128}" 2>&1 >/dev/null | %filecheck %s --check-prefix=AUTO
// RUN: %tc-opt %s --tile-gemm="{n-tile=128 store=tma}" 2>&1 >/dev/null | %filecheck %s --check-prefix=AUTO-TMA
// RUN: %tc-opt %s --tile-gemm="{n-tile=128 store=tma epilogue-tile=128x32 store-stages=2}" 2>&1 >/dev/null | %filecheck %s --check-prefix=TAKEN
// RUN: %exits 3 %tc-opt %s --tile-gemm="{epilogue-tile=96x64}" | %filecheck %s --check-prefix=ROWS
// RUN: %exits 3 %tc-opt %s --tile-gemm="{epilogue-tile=128x24}" | %filecheck %s --check-prefix=COLUMNS
// RUN: %exits 3 %tc-opt %s --tile-gemm="{epilogue-tile=128}" | %filecheck %s --check-prefix=WORD
// RUN: %exits 3 %tc-opt %s --tile-gemm="{n-tile=128 epilogue-tile=64x64}" | %filecheck %s --check-prefix=THREADS
// RUN: %exits 3 %tc-opt %s --tile-gemm="{n-tile=128 epilogue-tile=128x96}" | %filecheck %s --check-prefix=DIVIDES
// RUN: %exits 3 %tc-opt %s --tile-gemm="{n-tile=96 epilogue-tile=128x48}" | %filecheck %s --check-prefix=LOADED

// AUTO: remark: epilogue-tile=128x16 (auto: all rows, as threads store them; 16 sums in registers of a thread)
// AUTO-TMA: remark: epilogue-tile=32x64 (auto: a warp's rows, the widest swizzle span that divides a tile's; 4 in shared memory, a warp stores each)
// TAKEN: remark: epilogue-tile=128x32 (as the option says; 2 in shared memory, 4 warps share each)
// ROWS: expected epilogue-tile=auto or MxN, with M one of 32, 64, 128 (a warp reads 32 lanes of tensor memory, PTX ISA 9.7.16.8) and N a multiple of 16 in [16, 256], got 96x64; take epilogue-tile=auto
// COLUMNS: got 128x24; take epilogue-tile=auto
// WORD: got 128; take epilogue-tile=auto
// THREADS: expected epilogue-tile=128xN with store=direct, got 64x64: each of the four warps stores its own 32 rows from registers, all at the same time, so there is no staging buffer for fewer rows; take store=tma or epilogue-tile=128x16
// DIVIDES: the columns of epilogue-tile must divide n-tile=128, got 128x96: the last tile would otherwise read tensor memory past the accumulator; take epilogue-tile=128x16
// LOADED: expected 16, 32, 64, 128 columns of epilogue-tile with store=direct, got 128x48: one tcgen05.ld.32x32b loads a power of two of columns, each into a register of the thread (PTX ISA 9.7.16.8.1); take epilogue-tile=128x16

// DIRECT: scf.for %{{.*}} = %c0 to %c128 step %c64
// DIRECT: "tc.tmem_ld"{{.*}} -> vector<32x64xf32>
// DIRECT: "tc.store_rows"{{.*}}vector<32x64xf16>

// Two warps write a tile of 64 rows, the last of them stores it.
// SHARED: "tc.make_tensor_map"(%arg2) {box = array<i64: 64, 64>
// SHARED: "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 64, 64>, f16, "K", "128B">>
// SHARED: scf.for %{{.*}} = %c0 to %c2 step %c1 {
// SHARED: scf.for %[[Q:.*]] = %c0 to %c4
// SHARED: %[[PAIR:.*]] = arith.divui %[[Q]], %c2
// SHARED: %[[TILE:.*]] = "tc.slot"(%{{.*}}, %[[PAIR]])
// SHARED: %[[REST:.*]] = arith.remui %[[Q]], %c2
// SHARED: %[[ROW:.*]] = arith.muli %[[REST]], %c32
// SHARED: "tc.store_shared"(%{{.*}}, %[[TILE]], %[[ROW]], %{{.*}})
// SHARED: %[[LAST:.*]] = arith.cmpi eq, %{{.*}}, %c1
// SHARED: scf.if %[[LAST]] {
// SHARED: "tc.tma_store"(%{{.*}}, %{{.*}}, %{{.*}}, %[[TILE]])

// WHOLE: box = array<i64: 64, 128>
// WHOLE: !tc.ring<2 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>

// ROLES: kind = "mma"
// ROLES: "tc.bulk_wait"() {pending = 0 : i64, read = true}
// ROLES: "tc.warps_barrier"(%[[N:.*]]) {warps = 2 : i64}
// ROLES-NEXT: scf.for
// ROLES: "tc.store_shared"
// ROLES: "tc.fence"() {kind = "proxy.async"}
// ROLES: "tc.warps_barrier"(%{{.*}}) {warps = 2 : i64}
// ROLES-NEXT: scf.if
// ROLES: "tc.tma_store"
// ROLES-NEXT: "tc.bulk_commit"()
func.func @f(%a: tensor<300x192xf16>, %b: tensor<256x192xf16>) -> tensor<300x256xf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<300x192xf16>, tensor<256x192xf16>) -> tensor<300x256xf16>
  return %c : tensor<300x256xf16>
}
