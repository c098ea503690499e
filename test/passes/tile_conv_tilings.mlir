// RUN: %tc-opt %s --tile-conv-shift-reuse="{tiling=linear}" | %filecheck %s --check-prefix=LINEAR
// RUN: %tc-opt %s --tile-conv-shift-reuse="{tiling=packed}" | %filecheck %s --check-prefix=PACKED
// RUN: %tc-opt %s --tile-conv-shift-reuse="{halo=refresh}" | %filecheck %s --check-prefix=ASHIFT
// RUN: %tc-opt %s --tile-conv-shift-reuse="{halo=refresh shift=shift}" | %filecheck %s --check-prefix=SHIFT
// RUN: %tc-opt %s --tile-conv-shift-reuse="{halo=refresh}" --multi-buffer --place-barriers | %filecheck %s --check-prefix=WAIT
// RUN: %tc-opt %s --tile-conv-shift-reuse="{tiling=linear}" --multi-buffer --place-barriers | %filecheck %s --check-prefix=READY
// RUN: %tc-opt %s --tile-conv-shift-reuse="{halo=refresh tiling=packed halo-load=w128}" | %filecheck %s --check-prefix=W128
// RUN: %exits 3 %tc-opt %s --tile-conv-shift-reuse="{shift=shift}" | %filecheck %s --check-prefix=NOSHIFT

// D is zeroed and every tap has a mask; even the first mma adds.
// LINEAR: "tc.make_tensor_map"(%arg0) {box = array<i64: 16, 32>, corners = array<i64>, dims = array<i64: 8, 162>
// LINEAR: %[[M:.*]] = "tc.lane_masks"() {count = 9 : i64}
// LINEAR: "tc.tmem_st"
// LINEAR: "tc.write_lane_mask"(%[[M]]
// LINEAR: scf.for
// LINEAR: "tc.enable_lanes"({{%.*}}, %[[M]]
// LINEAR: "tc.mma"({{%.*}}, {{%.*}}, {{%.*}}, %true) {a_slice = 0 : i64, ashift = true
// LINEAR: "tc.store_lanes"

// Rows of 9 outputs and two more lanes: walk positions w = -1 … 9.
// PACKED: box = array<i64: 16, 32>, corners = array<i64: -1, 0, 1, -2>
// PACKED: "tc.store_lanes"

// Two shifts, so two halo pixels a quarter; after a tap all slices are refreshed.
// ASHIFT: "tc.tma_load"{{.*}}nbytes = 128 : i64{{.*}}row = 0 : i64
// ASHIFT: "tc.tma_load"{{.*}}nbytes = 128 : i64{{.*}}row = 3 : i64
// ASHIFT: "tc.tma_load"{{.*}}nbytes = 128 : i64{{.*}}row = 8 : i64
// ASHIFT: "tc.mma"{{.*}}ashift = true
// ASHIFT: "tc.refresh"({{.*}}) {row = 0 : i64, slice = 0 : i64}
// ASHIFT: "tc.mma"{{.*}}ashift = true
// ASHIFT: "tc.refresh"({{.*}}) {row = 8 : i64, slice = 0 : i64}
// ASHIFT: "tc.mma"{{.*}}ashift = false
// ASHIFT: rows = 32 : i64

// One load of 128 pixels of a row of both images, with two for each quarter behind them.
// W128: box = array<i64: 64, 128>, corners = array<i64: -1, 1>{{.*}}mode = "im2col_w128"
// W128: "tc.tma_load"{{.*}}halo = 2 : i64, nbytes = 17408 : i64
// W128: "tc.refresh"({{.*}}) {row = 128 : i64, slice = 0 : i64}
// W128: "tc.refresh"({{.*}}) {row = 132 : i64, slice = 0 : i64}

// SHIFT: "tc.mma"{{.*}}ashift = false
// SHIFT-NEXT: "tc.shift"({{.*}}) {quarter = 0 : i64, slice = 0 : i64}
// SHIFT-NEXT: "tc.shift"({{.*}}) {quarter = 1 : i64, slice = 0 : i64}
// SHIFT: "tc.refresh"

// WAIT: ashift = true
// WAIT: "tc.commit"(%[[BAR:.*]]) {tc.for_role = "mma"}
// WAIT: "tc.mbarrier_wait"(%[[BAR]], %c0) {tc.for_role = "mma"}
// WAIT: "tc.fence"() {kind = "tcgen05.after", tc.for_role = "mma"}
// WAIT: "tc.refresh"
// WAIT: "tc.commit"(%[[BAR]])
// WAIT: "tc.mbarrier_wait"(%[[BAR]], %c1) {tc.for_role = "mma"}

// READY: %[[READY:.*]] = "tc.mbarrier_init"() {arrivals = 128 : i64} : () -> !tc.mbarrier
// READY: "tc.tmem_st"
// READY: "tc.tmem_wait"() {kind = "st"}
// READY: "tc.fence"() {kind = "tcgen05.before"
// READY: "tc.mbarrier_arrive"(%[[READY]])
// READY: "tc.mbarrier_wait"(%[[READY]], %c0) {tc.for_role = "mma"}

// NOSHIFT: error: expected shift=ashift with halo=mask, got shift
func.func @nine(%x: tensor<2x9x9x8xf16>, %w: tensor<3x3x8x16xf16>) -> tensor<2x7x9x16xf32> {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 1, 1>, filter = "hwcf"} : (tensor<2x9x9x8xf16>, tensor<3x3x8x16xf16>) -> tensor<2x7x9x16xf32>
  return %y : tensor<2x7x9x16xf32>
}
