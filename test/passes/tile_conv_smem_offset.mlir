// One tile of the input serves every tap: each mma reads it from another row on.
// RUN: %tc-opt %S/Inputs/conv.mlir --tile-conv-smem-offset | %filecheck %s
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-smem-offset="{n-tile=20}" | %filecheck %s --check-prefix=N20

// Rows of nine pixels stand twelve apart: tap (r, s) begins 12 r + s rows further.
// CHECK: func.func @f({{.*}}tc.grid = array<i64: 1, 1, 1>
// CHECK: %[[X:.*]] = "tc.make_tensor_map"(%arg0) {box = array<i64: 8, 12, 9, 1, 2>
// CHECK: %[[TAIL:.*]] = "tc.make_tensor_map"(%arg0) {box = array<i64: 8, 46, 1, 1, 1>
// CHECK: %[[W:.*]] = "tc.make_tensor_map"(%arg1) {box = array<i64: 16, 16, 1, 1>
// CHECK: %[[D:.*]] = "tc.tmem_tile"
// CHECK: scf.for
// CHECK: %[[A:.*]] = "tc.smem_tile"() : () -> !tc.smem<array<i64: 108, 24>, f16, "K", "NONE">
// CHECK: "tc.tma_load"(%[[X]], {{.*}}, %[[A]]) {nbytes = 3456 : i64, {{.*}}row = 0 : i64}
// CHECK: "tc.tma_load"(%[[TAIL]], {{.*}}, %[[A]]) {nbytes = 736 : i64, {{.*}}row = 216 : i64}
// CHECK-COUNT-9: "tc.tma_load"(%[[W]]
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 0 : i64, a_slice = 0 : i64, ashift = false
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 1 :
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 2 :
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 12 :
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 13 :
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 14 :
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 24 :
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 25 :
// CHECK: "tc.mma"(%[[D]], %[[A]], {{.*}}) {a_row = 26 :
// CHECK-NOT: "tc.mma"
// CHECK: "tc.store_lanes"

// N20: error: expected n-tile to be a multiple of 16 in [16, 256], got 20
