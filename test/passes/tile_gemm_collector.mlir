// Tiles of B that read one tile of A.
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 n-tiles=3 collector=true}" | %filecheck %s
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 n-tiles=2}" | %filecheck %s --check-prefix=PLAIN
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 n-tiles=3 collector=true}" --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --verify-tc-kernel | %filecheck %s --check-prefix=ROLES
// RUN: %tc-opt %s --tile-gemm="{n-tile=64 n-tiles=2 collector=true}" 2>&1 >/dev/null | %filecheck %s --check-prefix=GAIN
// RUN: %exits 3 %tc-opt %s --tile-gemm="{collector=true}" | %filecheck %s --check-prefix=ONE
// RUN: %exits 3 %tc-opt %s --tile-gemm="{n-tiles=0}" | %filecheck %s --check-prefix=NONE
// RUN: %exits 3 %tc-opt %s --tile-gemm="{n-tile=128 n-tiles=5}" | %filecheck %s --check-prefix=ROOM
// RUN: %exits 3 %tc-opt %s --tile-gemm="{n-tile=64 n-tiles=2 store=tma}" | %filecheck %s --check-prefix=TMA

// GAIN: remark: collector: 2 mma of 64 columns read A from shared memory once: 12288 -> 8192 bytes of shared memory, 96 -> 80 cycles of the tensor core for 32 bytes of K (modelled, not measured; the saving is an upper bound, as the PTX ISA permits the hardware to reuse the buffer, and does not promise it)
// ONE: expected collector=false with n-tiles=1, got true: the collector buffer keeps A for a further mma with the same A, and with n-tiles=1 there is none (PTX ISA 9.7.16.10.9.1); take n-tiles=2
// NONE: n-tiles must be at least 1, got 0; smallest accepted: n-tiles=1
// ROOM: error: expected n-tiles of at most 4 with 128 columns each, got 5: tensor memory has 512 columns for their accumulators; take n-tiles=4
// TMA: expected n-tiles=1 with store=tma, got 2: not built: the buffers in shared memory for TMA stores serve one accumulator; leave it out

// CHECK: tc.grid = array<i64: 1, 2, 1>
// CHECK: arith.muli %{{.*}}, %c192
// CHECK: %[[D0:.*]] = "tc.tmem_tile"
// CHECK: %[[D1:.*]] = "tc.tmem_tile"
// CHECK: %[[D2:.*]] = "tc.tmem_tile"
// CHECK: %[[A:.*]] = "tc.smem_tile"
// CHECK: %[[B0:.*]] = "tc.smem_tile"
// CHECK: %[[B1:.*]] = "tc.smem_tile"
// CHECK: %[[B2:.*]] = "tc.smem_tile"
// CHECK-COUNT-4: "tc.tma_load"
// CHECK: "tc.mma"(%[[D0]], %[[A]], %[[B0]], %{{.*}}a_slice = 0{{.*}}collector = "fill"
// CHECK-NEXT: "tc.mma"(%[[D1]], %[[A]], %[[B1]], %{{.*}}a_slice = 0{{.*}}collector = "use"
// CHECK-NEXT: "tc.mma"(%[[D2]], %[[A]], %[[B2]], %{{.*}}a_slice = 0{{.*}}collector = "lastuse"
// CHECK: "tc.mma"(%[[D0]], %[[A]], %[[B0]], %{{.*}}a_slice = 1{{.*}}collector = "fill"
// CHECK: "tc.tmem_ld"(%[[D0]]
// CHECK: "tc.tmem_ld"(%[[D1]]
// CHECK: "tc.tmem_ld"(%[[D2]]
// PLAIN-COUNT-2: "tc.tmem_tile"
// PLAIN-NOT: collector
// ROLES: kind = "mma"
func.func @f(%a: tensor<40x72xf16>, %b: tensor<200x72xf16>) -> tensor<40x200xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x72xf16>, tensor<200x72xf16>) -> tensor<40x200xf32>
  return %c : tensor<40x200xf32>
}
