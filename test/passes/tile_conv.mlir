// The cheapest legal schedule's program, and remarks: the table it was chosen from, its stores.
// RUN: %tc-opt %S/Inputs/conv.mlir --tile-conv 2>&1 | %filecheck %s
// RUN: %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{n-tile=16 tiling=rows}" | %filecheck %s --check-prefix=SAME
// RUN: %tc-opt %S/Inputs/conv.mlir --tile-conv 2>/dev/null | %filecheck %s --check-prefix=SAME
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv="{n-tile=20}" | %filecheck %s --check-prefix=N20

// CHECK: remark: chose conv-shift-reuse{tiling=rows} (modelled, not measured)
// CHECK: schedule {{ *}}n-tile
// CHECK-NEXT: conv-shift-reuse{tiling=rows} {{ *}}16
// CHECK-NEXT: conv-shift-reuse{tiling=packed}
// CHECK-NEXT: conv-shift-reuse{tiling=linear}
// CHECK-NEXT: conv-smem-offset
// CHECK-NEXT: conv-implicit-gemm
// CHECK-NEXT: halo=refresh is not considered
// CHECK: remark: epilogue-tile=128x16
// CHECK-NEXT: "tc.conv2d"(
// CHECK-NOT: "tc.conv2d"(

// SAME: func.func @f({{.*}}tc.grid = array<i64: 2, 1, 1>
// SAME: "tc.make_tensor_map"({{.*}}box = array<i64: 16, 32, 1, 1>
// SAME: ashift = true
// SAME: "tc.store_rows"

// N20: error: {{.*}}expected n-tile to be a multiple of 16 in [16, 256], got 20
