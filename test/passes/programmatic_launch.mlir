// Programmatic dependent launch: roles that access global memory wait for the launch before.
// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --programmatic-launch --verify-tc-kernel | %filecheck %s
// RUN: %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=2}" --place-barriers --plan-memory --assign-roles --programmatic-launch --convert-tc-to-nvvm | %filecheck %s --check-prefix=NVVM
// RUN: %exits 3 %tc-opt %S/Inputs/kernel.mlir --multi-buffer="{stages=2}" --place-barriers --plan-memory --programmatic-launch | %filecheck %s --check-prefix=EARLY

// CHECK: func.func @{{.*}}tc.programmatic
// CHECK-NOT: tc.grid_wait
// CHECK: "tc.role"() ({
// CHECK-NEXT: ^bb0(%{{.*}}: index):
// CHECK-NEXT: "tc.grid_wait"() : () -> ()
// CHECK-NEXT: scf.for
// CHECK: "tc.tma_load"
// CHECK: "tc.tma_load"
// CHECK-NEXT: }
// CHECK-NEXT: "tc.grid_launch_dependents"() : () -> ()
// CHECK-NEXT: }) {kind = "producer"

// The mma access no global memory.
// CHECK-NOT: tc.grid_wait
// CHECK: }) {kind = "mma"
// CHECK-NEXT: "tc.role"() ({
// CHECK-NEXT: ^bb0(%{{.*}}: index):
// CHECK-NEXT: "tc.grid_wait"() : () -> ()
// CHECK-NOT: tc.grid_
// CHECK: }) {kind = "epilogue"

// NVVM: llvm.func @{{.*}}tc.programmatic
// NVVM: nvvm.griddepcontrol wait
// NVVM: nvvm.griddepcontrol launch_dependents
// NVVM: nvvm.griddepcontrol wait
// NVVM-NOT: nvvm.griddepcontrol

// EARLY: error: expected a kernel with a role of kind producer, got none; run assign-roles first
