// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=2}" --place-barriers --plan-memory | %filecheck %s
// RUN: %exits 3 %tc-opt %S/Inputs/kernel.mlir --plan-memory | %filecheck %s --check-prefix=EARLY
// RUN: %exits 3 %tc-opt %S/Inputs/columns.mlir --plan-memory | %filecheck %s --check-prefix=COLUMNS
// RUN: %exits 3 %tc-opt %s --tile-conv-shift-reuse="{n-tile=256}" --multi-buffer --place-barriers --plan-memory | %filecheck %s --check-prefix=BYTES

// 2 x 4096 + 2 x 512 bytes of tiles, five mbarriers, the address; 16 + 2 x 8 columns.
// CHECK: tc.smem_bytes = 9260 : i64
// CHECK-SAME: tc.tmem_columns = 32 : i64
// CHECK: "tc.smem_tile"() {offset = 0 : i64}
// CHECK-NEXT: "tc.smem_tile"() {offset = 8192 : i64}
// CHECK-NEXT: "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 9216 : i64}
// CHECK-NEXT: "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 9232 : i64}
// CHECK-NEXT: "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 9248 : i64}
// CHECK-NEXT: "tc.fence"() {kind = "mbarrier_init"}
// CHECK-NEXT: %[[BASE:.*]] = "tc.tmem_alloc"() {address_slot = 9256 : i64, columns = 32 : i64, warp = 5 : i64}
// CHECK-NEXT: "tc.tmem_relinquish"() {warp = 5 : i64}
// CHECK-NEXT: "tc.cta_barrier"()
// CHECK-NEXT: "tc.tmem_tile"(%[[BASE]]) {column = 0 : i64
// CHECK-NEXT: "tc.tmem_tile"(%[[BASE]]) {column = 16 : i64{{.*}}!tc.ring<2
// CHECK-NEXT: scf.for
// CHECK: "tc.cta_barrier"()
// CHECK-NEXT: "tc.tmem_dealloc"(%[[BASE]]) {columns = 32 : i64, warp = 5 : i64}
// CHECK-NEXT: return

// EARLY: error: expected a CTA barrier after the set-up and one before the end, got 0; run place-barriers first
// COLUMNS: columns.mlir:2:9: error: expected at most 512 columns of tensor memory, got 576 (256 + 32 + 32 + 256; PTX ISA 9.7.16.1)
// BYTES: plan_memory.mlir:29:8: error: expected at most 232448 bytes of shared memory, got {{[0-9]+}} (tiles: 1 x 16384 bytes, 1 x 32768 bytes
func.func @wide(%x: tensor<1x9x9x64xf16>, %w: tensor<1x7x64x256xf16>) -> tensor<1x9x3x256xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x9x9x64xf16>, tensor<1x7x64x256xf16>) -> tensor<1x9x3x256xf32>
  return %y : tensor<1x9x3x256xf32>
}
