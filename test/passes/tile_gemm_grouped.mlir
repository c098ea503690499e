// tile-gemm of groups of rows: a CTA per tile that there may be finds its group.
// RUN: %tc-opt %s --split-input-file --tile-gemm | %filecheck %s
// RUN: %tc-opt %s --split-input-file --tile-gemm="{persistent=true ctas=3}" | %filecheck %s --check-prefix=PERSISTENT
// RUN: %tc-opt %s --split-input-file --tile-gemm="{persistent=true scheduler=clc}" | %filecheck %s --check-prefix=TAKEN
// RUN: %tc-opt %s --split-input-file --tile-gemm="{store=tma n-tile=32}" | %filecheck %s --check-prefix=STORE
// RUN: %tc-opt %s --split-input-file --tile-gemm="{cta-group=2}" | %filecheck %s --check-prefix=PAIR
// RUN: %tc-opt %s --split-input-file --tile-gemm="{cluster=1x2 n-tile=32}" | %filecheck %s --check-prefix=CLUSTER
// RUN: %exits 3 %tc-opt %s --split-input-file --tile-gemm="{kind=mxf4}" | %filecheck %s --check-prefix=KIND
// RUN: %exits 3 %tc-opt %s --split-input-file --swap-operands="{swap=always}" | %filecheck %s --check-prefix=SWAP
// RUN: %tc-opt %s --split-input-file --swap-operands | %filecheck %s --check-prefix=KEPT
// RUN: %tc-opt %s --split-input-file --split-k="{splits=2}" | %filecheck %s --check-prefix=SPLIT
// KIND: tile_gemm_grouped.mlir:{{[0-9]+}}:8: error: expected no kind with groups, got mxf4: tcgen05.mma has one kind for each type of operands that are not block-scaled; leave kind out
// SWAP: tile_gemm_grouped.mlir:{{[0-9]+}}:8: error: expected swap=auto or never with groups, got always
// KEPT-COUNT-2: "tc.grouped_matmul"
// SPLIT: %[[PARTS:.*]] = "tc.grouped_matmul"(%arg0, %arg1, %arg2) {{.*}}k_part = 64
// SPLIT: "tc.sum_parts"(%[[PARTS]], %arg2)

// 200 rows of 3 groups are at most (200 + 3 * 127) / 128 = 4 tiles.
// CHECK-LABEL: func.func @contiguous(
// CHECK-SAME: tc.grid = array<i64: 4, 2, 1>, {{.*}}tc.unwritten
// CHECK: "tc.make_tensor_map"(%arg0) {box = array<i64: 64, 128>, {{.*}}dims = array<i64: 72, 200>
// CHECK: "tc.make_tensor_map"(%arg1) {{.*}}dims = array<i64: 136, 72, 3>
// CHECK: %[[X:.*]] = gpu.block_id x
// CHECK: %[[FOUND:.*]]:3 = "tc.find_group"(%arg2, %[[X]])
// CHECK: %[[AFTER:.*]] = arith.addi %[[FOUND]]#1, %[[FOUND]]#2
// CHECK: %[[END:.*]] = arith.minui %[[AFTER]], %c200
// No rows, no turn.
// CHECK: %[[ANY:.*]] = arith.minui %[[FOUND]]#2, %c1
// CHECK: scf.for %{{.*}} = %c0 to %[[ANY]] step %c1 {
// CHECK: "tc.tma_load"(%{{.*}}, %{{.*}}, %[[FOUND]]#1, %{{.*}})
// CHECK: "tc.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[FOUND]]#0, %{{.*}})
// Lanes beyond the group's rows have an index outside of the result.
// CHECK: %[[LIMIT:.*]] = vector.broadcast %[[END]] : index to vector<32xindex>
// CHECK: %[[OURS:.*]] = arith.cmpi ult, %{{.*}}, %[[LIMIT]]
// CHECK: %[[ROWS:.*]] = arith.select %[[OURS]], %{{.*}}, %{{.*}}
// CHECK: "tc.store_lanes"(%{{.*}}, %arg3, %[[ROWS]], %{{.*}})
// CHECK: } {tc.most_trips = 1 : i64}
// Persistent: the tiles of all groups in turn, at most those for which there is room.
// PERSISTENT-LABEL: func.func @contiguous(
// PERSISTENT-SAME: tc.grid = array<i64: 3, 1, 1>
// PERSISTENT: %[[TILES:.*]] = "tc.count_tiles"(%arg2)
// PERSISTENT: %[[BOTH:.*]] = arith.muli %[[TILES]], %c2
// PERSISTENT: arith.minui %[[BOTH]], %c8
// PERSISTENT: scf.for
// PERSISTENT: %[[ROW:.*]] = arith.divui %[[NUMBER:.*]], %c2
// PERSISTENT: "tc.find_group"(%arg2, %[[ROW]])
// PERSISTENT: arith.remui %[[NUMBER]], %c2
// PERSISTENT: "tc.tmem_tile"
// PERSISTENT: } {tc.most_trips = 3 : i64}
// A CTA for each of eight tiles: one turn, or none where there are fewer tiles.
// TAKEN-LABEL: func.func @contiguous(
// TAKEN-SAME: tc.grid = array<i64: 8, 1, 1>
// TAKEN: %[[LEFT:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// TAKEN: %[[TURNS:.*]] = arith.divui %[[LEFT]], %c8
// TAKEN: scf.for %{{.*}} = %c0 to %[[TURNS]] step %c1
// TAKEN: %[[CTA:.*]] = gpu.block_id x
// TAKEN: arith.remui %[[CTA]], %c2
// TAKEN: } {tc.most_trips = 8 : i64}
// 32 rows of a warp: by TMA if all are in the group, else by threads.
// STORE-LABEL: func.func @contiguous(
// STORE: %[[WHOLE:.*]] = arith.cmpi ule, %{{.*}}, %[[END:.*]] : index
// STORE: %[[LAST:.*]] = arith.select %[[WHOLE]], %c0, %[[END]]
// STORE: %[[LIMIT:.*]] = vector.broadcast %[[LAST]]
// STORE: arith.cmpi ult, %{{.*}}, %[[LIMIT]] : vector<32xindex>
// STORE: "tc.store_lanes"
// STORE: "tc.store_shared"
// STORE: %[[BOX:.*]] = arith.select %{{.*}}, %{{.*}}, %c200
// STORE: "tc.tma_store"(%{{.*}}, %{{.*}}, %[[BOX]]
// (200 + 3 * 255) / 256 = 3 tiles of 256 rows, of two CTAs each.
// PAIR-LABEL: func.func @contiguous(
// PAIR-SAME: tc.cluster = array<i64: 2, 1, 1>, tc.grid = array<i64: 6, 1, 1>
// PAIR: %[[X:.*]] = gpu.block_id x
// PAIR: %[[PAIRS:.*]] = arith.divui %[[X]], %c2
// PAIR: %[[FOUND:.*]]:3 = "tc.find_group"(%arg2, %[[PAIRS]]) {tile_rows = 256 : i64}
// PAIR: %[[RANK:.*]] = "tc.cta_rank"
// PAIR: %[[ROWS:.*]] = arith.muli %[[RANK]], %c128
// PAIR: arith.addi %[[FOUND]]#1, %[[ROWS]]
// Columns of a group are computed by two CTAs, which load half of A's rows each.
// CLUSTER-LABEL: func.func @contiguous(
// CLUSTER-SAME: tc.cluster = array<i64: 1, 2, 1>, tc.grid = array<i64: 4, 6, 1>
// CLUSTER: "tc.find_group"(%arg2, %{{.*}}) :
// CLUSTER: %[[HALF:.*]] = "tc.smem_part"
// CLUSTER: "tc.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[HALF]]) {cta_mask = 3 : i64
func.func @contiguous(%a: tensor<200x72xf16>, %b: tensor<3x72x136xf16>, %sizes: tensor<3xi32>) -> tensor<200x136xf32> {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"} : (tensor<200x72xf16>, tensor<3x72x136xf16>, tensor<3xi32>) -> tensor<200x136xf32>
  return %c : tensor<200x136xf32>
}

// -----

// Two tiles of each group, whatever its size.
// CHECK-LABEL: func.func @masked(
// CHECK-SAME: tc.grid = array<i64: 6, 1, 1>
// CHECK: %[[FOUND:.*]]:3 = "tc.find_group"(%arg2, %{{.*}}) {capacity = 200 : i64}
// CHECK: "tc.tma_load"(%{{.*}}, %{{.*}}, %[[FOUND]]#1, %[[FOUND]]#0, %{{.*}})
// CHECK: "tc.tma_load"(%{{.*}}, %{{.*}}, %{{.*}}, %[[FOUND]]#0, %{{.*}})
// CHECK: %[[GROUP:.*]] = vector.broadcast %[[FOUND]]#0 : index to vector<32xindex>
// CHECK: "tc.store_lanes"(%{{.*}}, %arg3, %[[GROUP]], %{{.*}}, %{{.*}})
func.func @masked(%a: tensor<3x200x72xf16>, %b: tensor<3x40x72xf16>, %sizes: tensor<3xi32>) -> tensor<3x200x40xbf16> {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "nk"} : (tensor<3x200x72xf16>, tensor<3x40x72xf16>, tensor<3xi32>) -> tensor<3x200x40xbf16>
  return %c : tensor<3x200x40xbf16>
}

// -----

// An epilogue: rows of the tile follow each other, those of the next group are loaded, and not stored.
// CHECK-LABEL: func.func @epilogue(
// CHECK: %[[FOUND:.*]]:3 = "tc.find_group"
// CHECK: arith.addi %[[FOUND]]#1, %[[FOUND]]#2
// CHECK: arith.addi %[[FOUND]]#1, %{{.*}} : index
// CHECK: %[[ROW:.*]] = arith.addi %[[FOUND]]#1, %{{.*}} : index
// CHECK: %[[D:.*]] = "tc.tmem_ld"
// CHECK: "tc.load_rows"(%arg3, %[[ROW]], %{{.*}}) {{.*}}row_dim = 0
// CHECK: "tc.store_lanes"
func.func @epilogue(%a: tensor<200x72xf16>, %b: tensor<3x72x24xf16>, %sizes: tensor<3xi32>, %r: tensor<200x24xf32>) -> tensor<200x24xf32> {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"} : (tensor<200x72xf16>, tensor<3x72x24xf16>, tensor<3xi32>) -> tensor<200x24xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %z = "tc.element"(%r) {map = affine_map<(t, n) -> (t, n)>} : (tensor<200x24xf32>) -> f32
    %q = arith.addf %s, %z : f32
    "tc.yield"(%q) : (f32) -> ()
  }) : (tensor<200x24xf32>) -> tensor<200x24xf32>
  return %d : tensor<200x24xf32>
}

// -----

// A bias and a scale of each group, those of the tile's.
// CHECK-LABEL: func.func @of_group(
// CHECK: %[[FOUND:.*]]:3 = "tc.find_group"
// CHECK: "tc.load_rows"(%arg3, %[[FOUND]]#0, %{{.*}}) {column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<3x24xf32>
// CHECK: "tc.load_rows"(%arg4, %[[FOUND]]#0) {operandSegmentSizes = array<i32: 1, 1>} : (memref<3xf32>
func.func @of_group(%a: tensor<200x72xf16>, %b: tensor<3x72x24xf16>, %sizes: tensor<3xi32>, %bias: tensor<3x24xf32>, %scale: tensor<3xf32>) -> tensor<200x24xf32> {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"} : (tensor<200x72xf16>, tensor<3x72x24xf16>, tensor<3xi32>) -> tensor<200x24xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %x = "tc.element"(%bias) {map = affine_map<(t, n) -> (n)>, of_group} : (tensor<3x24xf32>) -> f32
    %w = "tc.element"(%scale) {map = affine_map<(t, n) -> ()>, of_group} : (tensor<3xf32>) -> f32
    %p = arith.mulf %s, %w : f32
    %q = arith.addf %p, %x : f32
    "tc.yield"(%q) : (f32) -> ()
  }) : (tensor<200x24xf32>) -> tensor<200x24xf32>
  return %d : tensor<200x24xf32>
}
