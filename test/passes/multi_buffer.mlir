// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=3}" | %filecheck %s
// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=1}" | %filecheck %s --check-prefix=ONE
// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer | %filecheck %s --check-prefix=AUTO
// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer -o %t 2>&1 | %filecheck %s --check-prefix=SUM
// RUN: %exits 3 %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=-1}" | %filecheck %s --check-prefix=NEGATIVE
// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=45}" | %filecheck %s --check-prefix=MOST
// RUN: %exits 3 %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=46}" | %filecheck %s --check-prefix=BYTES
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --multi-buffer | %filecheck %s --check-prefix=TENSORS

// CHECK: %[[A:.*]] = "tc.smem_tile"() : () -> !tc.ring<3 : i64, !tc.smem<array<i64: 128, 16>, f16, "K", "32B">>
// CHECK-NEXT: %[[B:.*]] = "tc.smem_tile"() : () -> !tc.ring<3 : i64, !tc.smem<array<i64: 16, 16>
// CHECK-NEXT: %[[T:.*]] = "tc.tmem_tile"(){{.*}} -> !tc.ring<3 : i64, !tc.tmem<array<i64: 128, 16>, f16>>
// CHECK-NEXT: scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK-NEXT: %[[SLOT:.*]] = arith.remui %[[I]], %c3 : index
// CHECK-NEXT: %[[SA:.*]] = "tc.slot"(%[[A]], %[[SLOT]])
// CHECK-NEXT: %[[SB:.*]] = "tc.slot"(%[[B]], %[[SLOT]])
// CHECK: "tc.tma_load"({{.*}}, %[[SA]])
// CHECK: "tc.tma_load"({{.*}}, %[[SB]])
// CHECK: %[[ST:.*]] = "tc.slot"(%[[T]], %[[SLOT]])
// CHECK: "tc.cp"(%[[SA]], %[[ST]])
// CHECK-NOT: smem_tile

// With one slot the index is the constant 0.
// ONE: !tc.ring<1 : i64
// ONE: "tc.slot"(%{{.*}}, %c0)

// SUM: remark: ring of 4 stages: 4 x {{[0-9]+}} bytes + 1024 for mbarriers = {{[0-9]+}} of 232448 bytes of shared memory; 4 x {{[0-9]+}} + {{[0-9]+}} = {{[0-9]+}} of 512 columns of tensor memory

// Everything fits: as many slots as iterations.
// AUTO: !tc.ring<4 : i64

// NEGATIVE: expected stages of at least 1, or 0 to choose, got -1

// MOST: !tc.ring<45 : i64
// BYTES: error: expected stages of at most 45, got 46: 46 x 5120 = 235520, a CTA has 232448 bytes of shared memory, 227 KB, where TMA puts operands and mma reads them; take stages=45 or a smaller n-tile

// TENSORS: error: multi-buffer expected a function with the attribute tc.kernel, got none
