// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=128}" | %filecheck %s
// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=256}" | %filecheck %s --check-prefix=N256
// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=128 persistent=true ctas=4}" | %filecheck %s --check-prefix=FOUR
// RUN: %tc-opt %s --split-input-file --tile-gemm="{n-tile=128 persistent=true}" | %filecheck %s --check-prefix=SMS
// RUN: %exits 3 %tc-opt %s --split-input-file --tile-gemm="{ctas=4}" | %filecheck %s --check-prefix=NOT-PERSISTENT
// RUN: %exits 3 %tc-opt %s --split-input-file --tile-gemm="{n-tile=8}" | %filecheck %s --check-prefix=N8
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-gemm | %filecheck %s --check-prefix=CONV
// NOT-PERSISTENT: expected ctas=0 with persistent=false, got 4: a kernel that is not persistent has a CTA for every tile; take persistent=true

// RUN: %exits 3 %tc-opt %s --split-input-file --tile-gemm="{kind=mxf4}" | %filecheck %s --check-prefix=KIND
// KIND: error: expected no kind in a product of matrices, got mxf4: tcgen05.mma has one kind for each type of operands that are not block-scaled; leave kind out
// N8: error: expected n-tile to be a multiple of 16 in [16, 256], got 8
// CONV: 2:8: error: tile-gemm expected a function of one tc.matmul and func.return, got tc.conv2d, func.return

// A by rows is K-major, one box; B by rows is MN-major, two boxes of 64 columns.
// CHECK-LABEL: func.func @plain(
// CHECK-SAME: tc.grid = array<i64: 3, 2, 1>
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 128>, {{.*}}dims = array<i64: 192, 300>
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 64, 64>, {{.*}}dims = array<i64: 200, 192>
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 {
// CHECK: !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
// CHECK: !tc.smem<array<i64: 128, 64>, f16, "MN", "128B">
// CHECK: "tc.tma_load"{{.*}}nbytes = 16384 : i64
// CHECK: "tc.tma_load"{{.*}}nbytes = 8192 : i64, {{.*}}row = 0 : i64
// CHECK: "tc.tma_load"{{.*}}nbytes = 8192 : i64, {{.*}}row = 64 : i64
// CHECK-COUNT-4: "tc.mma"
// CHECK: row_dim = 0 : i64
// N256-LABEL: func.func @plain(
// N256-SAME: tc.grid = array<i64: 3, 1, 1>
// N256: !tc.tmem<array<i64: 128, 256>, f32>
// Six tiles by four CTAs: CTAs 0 and 1 have two, 2 and 3 have one. Tile t is row t mod 3, column t / 3.
// FOUR-LABEL: func.func @plain(
// FOUR-SAME: tc.ctas_per_sm = 1 : i64, tc.grid = array<i64: 4, 1, 1>
// FOUR: %[[CTA:.*]] = gpu.block_id x
// FOUR: %[[LEFT:.*]] = arith.subi %c5, %[[CTA]]
// FOUR: %[[BEHIND:.*]] = arith.divui %[[LEFT]], %c4
// FOUR: %[[COUNT:.*]] = arith.addi %[[BEHIND]], %c1
// FOUR: scf.for %[[T:.*]] = %c0 to %[[COUNT]] step %c1 {
// FOUR: %[[ROUND:.*]] = arith.muli %[[T]], %c4
// FOUR: %[[TILE:.*]] = arith.addi %[[ROUND]], %[[CTA]]
// FOUR: arith.divui %[[TILE]], %c6
// FOUR: %[[INSIDE:.*]] = arith.remui %[[TILE]], %c6
// FOUR: arith.remui %[[INSIDE]], %c3
// FOUR: arith.divui %[[INSIDE]], %c3
// FOUR: "tc.tmem_tile"
// FOUR: scf.for %{{.*}} = %c0 to %c3 step %c1 {
// FOUR: "tc.tmem_ld"
// FOUR: } {tc.most_trips = 2 : i64}
// Fewer tiles than SMs: a CTA each.
// SMS-LABEL: func.func @plain(
// SMS-SAME: tc.grid = array<i64: 6, 1, 1>
func.func @plain(%a: tensor<300x192xf16>, %b: tensor<192x200xf16>) -> tensor<300x200xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<300x192xf16>, tensor<192x200xf16>) -> tensor<300x200xf32>
  return %c : tensor<300x200xf32>
}

// -----

// The batch is the outermost coordinate of every map and of the output.
// CHECK-LABEL: func.func @batch(
// CHECK-SAME: tc.grid = array<i64: 1, 1, 5>
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 16, 1>, {{.*}}dims = array<i64: 40, 16, 5>
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 16, 128, 1>, {{.*}}dims = array<i64: 16, 24, 5>
// CHECK: %[[Z:.*]] = gpu.block_id z
// CHECK: "tc.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[Z]], %
// CHECK: row_dim = 1 : i64
// Persistent: the batch is the slowest part of a tile's number.
// FOUR-LABEL: func.func @batch(
// FOUR: scf.for
// FOUR: %[[TILE:.*]] = arith.addi
// FOUR: "tc.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[TILE]], %
func.func @batch(%a: tensor<5x16x40xbf16>, %b: tensor<5x24x16xbf16>) -> tensor<5x40x24xbf16> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "nk"} : (tensor<5x16x40xbf16>, tensor<5x24x16xbf16>) -> tensor<5x40x24xbf16>
  return %c : tensor<5x40x24xbf16>
}

// -----

// A step is one span of the swizzle: 128 elements of one byte, 32 of tf32. i8 sums in i32.
// CHECK-LABEL: func.func @integers(
// CHECK: tc.make_tensor_map{{.*}}box = array<i64: 128, 128>, {{.*}}dtype = "u8"
// CHECK: !tc.tmem<array<i64: 128, 128>, i32>
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1 {
// CHECK: !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
// CHECK: !tc.smem<array<i64: 128, 128>, i8, "MN", "128B">
// CHECK-COUNT-4: "tc.mma"
// CHECK: vector<32x16xi32>
func.func @integers(%a: tensor<128x320xi8>, %b: tensor<320x48xi8>) -> tensor<128x48xi32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<128x320xi8>, tensor<320x48xi8>) -> tensor<128x48xi32>
  return %c : tensor<128x48xi32>
}

// -----

// CHECK-LABEL: func.func @tf32(
// CHECK: !tc.smem<array<i64: 128, 32>, f32, "K", "128B">
// CHECK-COUNT-4: "tc.mma"
func.func @tf32(%a: tensor<128x64xf32>, %b: tensor<32x64xf32>) -> tensor<128x32xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<128x64xf32>, tensor<32x64xf32>) -> tensor<128x32xf32>
  return %c : tensor<128x32xf32>
}

// -----

// An epilogue is cloned onto the register tiles; a bias along n has no row_dim: all lanes read it.
// CHECK-LABEL: func.func @epilogue(
// CHECK: %[[SUMS:.*]] = "tc.tmem_ld"
// CHECK: %[[BIAS:.*]] = "tc.load_rows"(%arg2, %[[N:.*]]) {column_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1>} : (memref<200xf32>, index) -> vector<32x16xf32>
// CHECK-NEXT: %[[C:.*]] = "tc.load_rows"(%arg3, %[[M:.*]], %[[N]]) {column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>, row_dim = 0 : i64} : (memref<300x200xf32>, index, index) -> vector<32x16xf32>
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[SUMS]], %[[BIAS]] : vector<32x16xf32>
// CHECK-NEXT: %[[U:.*]] = arith.addf %[[T]], %[[C]] : vector<32x16xf32>
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<32x16xf32>
// CHECK-NEXT: %[[R:.*]] = arith.maximumf %[[U]], %[[ZERO]]
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[R]] : vector<32x16xf32> to vector<32x16xf16>
// CHECK-NEXT: "tc.store_rows"(%[[H]], %arg4, %[[M]], %[[N]])
func.func @epilogue(%a: tensor<300x192xf16>, %b: tensor<192x200xf16>, %bias: tensor<200xf32>, %c: tensor<300x200xf32>) -> tensor<300x200xf16> {
  %sums = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<300x192xf16>, tensor<192x200xf16>) -> tensor<300x200xf32>
  %out = "tc.epilogue"(%sums) ({
  ^bb0(%sum: f32):
    %0 = "tc.element"(%bias) {map = affine_map<(m, n) -> (n)>} : (tensor<200xf32>) -> f32
    %1 = "tc.element"(%c) {map = affine_map<(m, n) -> (m, n)>} : (tensor<300x200xf32>) -> f32
    %2 = arith.addf %sum, %0 : f32
    %3 = arith.addf %2, %1 : f32
    %zero = arith.constant 0.0 : f32
    %4 = arith.maximumf %3, %zero : f32
    %5 = arith.truncf %4 : f32 to f16
    "tc.yield"(%5) : (f16) -> ()
  }) : (tensor<300x200xf32>) -> tensor<300x200xf16>
  return %out : tensor<300x200xf16>
}

// -----

// Stored by columns: lanes go along the last dimension, with them the bias; columns along the first.
// CHECK-LABEL: func.func @columns(
// CHECK-SAME: tc.grid = array<i64: 3, 1, 1>
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 64>, {{.*}}dims = array<i64: 320, 64>
// CHECK: "tc.make_tensor_map"(%arg1) {box = array<i64: 64, 128>, {{.*}}dims = array<i64: 64, 8>
// CHECK: "tc.load_rows"(%arg2, %[[LANE:.*]]) {operandSegmentSizes = array<i32: 1, 1>, row_dim = 0 : i64}
// CHECK: "tc.store_rows"(%{{.*}}, %arg3, %{{.*}}, %[[LANE]]) {column_dim = 0 : i64, {{.*}}row_dim = 1 : i64, rows = 32 : i64}
func.func @columns(%a: tensor<64x320xf16>, %b: tensor<8x64xf16>, %bias: tensor<320xf32>) -> tensor<8x320xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "nk", out_layout = "nm"} : (tensor<64x320xf16>, tensor<8x64xf16>) -> tensor<8x320xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %e = "tc.element"(%bias) {map = affine_map<(m, n) -> (n)>} : (tensor<320xf32>) -> f32
    %t = arith.addf %s, %e : f32
    "tc.yield"(%t) : (f32) -> ()
  }) : (tensor<8x320xf32>) -> tensor<8x320xf32>
  return %d : tensor<8x320xf32>
}

// -----

// Quantised: 64 columns at a time, codes to the rows, two fp4 to a byte, scales to the blocks.
// CHECK-LABEL: func.func @quantised(
// CHECK-SAME: %arg3: memref<40x32xi8>, %arg4: memref<1x1x512xf8E4M3FN>)
// CHECK: %[[NORM:.*]] = memref.load %arg2[]
// CHECK: scf.for %[[W:.*]] = %c0 to %c4 step
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c64
// CHECK: %[[D:.*]] = "tc.tmem_ld"{{.*}} -> vector<32x64xf32>
// CHECK: %[[T:.*]] = vector.broadcast %[[NORM]]
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[D]], %[[T]]
// CHECK-NEXT: %[[Q:.*]]:2 = "tc.quantise_rows"(%[[Y]]) : (vector<32x64xf32>) -> (vector<32x32xi8>, vector<32x4xf8E4M3FN>)
// CHECK: %[[K:.*]] = arith.divui %[[N:.*]], %c2
// CHECK-NEXT: "tc.store_rows"(%[[Q]]#0, %arg3, %[[M:.*]], %[[K]])
// CHECK: %[[S:.*]] = arith.divui %[[N]], %c16
// CHECK-NEXT: "tc.store_scales"(%[[Q]]#1, %arg4, %[[M]], %[[S]]) {{.*}}rows = 40 : i64, scales = 4 : i64
func.func @quantised(%a: tensor<40x16xf16>, %b: tensor<64x16xf16>, %norm: tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x16xf16>, tensor<64x16xf16>) -> tensor<40x64xf32>
  %q:2 = "tc.quantise_blocks"(%c, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return %q#0, %q#1 : tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>
}

// -----

// Gated: even and odd columns of the sums, half as many columns of the output.
// CHECK-LABEL: func.func @gated(
// CHECK: %[[D:.*]] = "tc.tmem_ld"{{.*}} -> vector<32x16xf32>
// CHECK-NEXT: %[[N:.*]] = arith.addi
// CHECK-NEXT: %[[H:.*]] = arith.divui %[[N]], %c2
// CHECK-NEXT: %[[G:.*]], %[[V:.*]] = vector.deinterleave %[[D]] : vector<32x16xf32> -> vector<32x8xf32>
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[G]], %[[V]] : vector<32x8xf32>
// CHECK-NEXT: "tc.store_rows"(%[[P]], %arg2, %{{.*}}, %[[H]])
func.func @gated(%a: tensor<40x16xf16>, %b: tensor<64x16xf16>) -> tensor<40x32xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x16xf16>, tensor<64x16xf16>) -> tensor<40x64xf32>
  %h = "tc.epilogue"(%c) ({
  ^bb0(%gate: f32, %value: f32):
    %t = arith.mulf %gate, %value : f32
    "tc.yield"(%t) : (f32) -> ()
  }) : (tensor<40x64xf32>) -> tensor<40x32xf32>
  return %h : tensor<40x32xf32>
}
