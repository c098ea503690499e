// RUN: %tc-opt %s --tile-gemv-padded-n="{schedule=stream-k}" | %filecheck %s --check-prefix=STREAM
// RUN: %tc-opt %s --tile-gemv-padded-n="{schedule=split-k splits=2}" | %filecheck %s --check-prefix=SPLIT
// RUN: %exits 3 %tc-opt %s --tile-gemv-padded-n="{schedule=split-k splits=3}" | %filecheck %s --check-prefix=MOST

// Seven CTAs share three tiles of five stages (64 of k): nine segments, at most two of a CTA.
// STREAM: tc.workspaces = array<i64: 4608>
// STREAM: func.func @nvfp4
// STREAM-SAME: memref<9x128x1xf32>
// STREAM-SAME: tc.args = array<i64: 0, 1, 2, 3, 5>
// STREAM-SAME: tc.grid = array<i64: 7, 1, 1>
// STREAM-SAME: tc.order = 0 : i64
// STREAM: scf.for
// STREAM: !tc.tmem<array<i64: 128, 16>, f32>
// STREAM: scf.for
// STREAM: "tc.mma_block_scale"
// STREAM: } {tc.most_trips = 3 : i64}
// STREAM: "tc.store_rows"
// STREAM: } {tc.most_trips = 2 : i64}
// STREAM: llvm.func @nvfp4_reduce
// STREAM-SAME: tc.order = 1 : i64

// Two CTAs a tile, each with one of its two stages of 256.
// SPLIT: tc.workspaces = array<i64: 3072>
// SPLIT: tc.grid = array<i64: 6, 1, 1>
// SPLIT: } {tc.most_trips = 1 : i64}
// SPLIT: llvm.func @nvfp4_reduce

// MOST: error: splits must be in [1, 2] with schedule=split-k, got 3
func.func @nvfp4(%a: tensor<300x320xf4E2M1FN>, %sa: tensor<3x5x512xf8E4M3FN>, %b: tensor<320xf4E2M1FN>, %sb: tensor<20xf8E4M3FN>) -> tensor<300xf16> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<300x320xf4E2M1FN>, tensor<3x5x512xf8E4M3FN>, tensor<320xf4E2M1FN>, tensor<20xf8E4M3FN>) -> tensor<300xf16>
  return %c : tensor<300xf16>
}
