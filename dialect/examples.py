"""One example of every op, as text that parses; `docs` prints them."""

from __future__ import annotations

EXAMPLES = {
    "tc.conv2d": """
func.func @example(%x: tensor<1x56x56x64xf16>, %w: tensor<3x3x64x64xf16>) {
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
      pads = array<i64: 1, 1, 1, 1>, filter = "hwcf"}
      : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> tensor<1x56x56x64xf32>
  return
}
""",
    "tc.repack": """
func.func @example(%w: tensor<7x7x3x64xf16>) -> tensor<64x7x7x8xf16> {
  %out = "tc.repack"(%w) {permutation = array<i64: 3, 0, 1, 2>}
      : (tensor<7x7x3x64xf16>) -> tensor<64x7x7x8xf16>
  return %out : tensor<64x7x7x8xf16>
}
""",
    "tc.matmul": """
func.func @example(%a: tensor<512x256xbf16>, %b: tensor<384x256xbf16>) {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"}
      : (tensor<512x256xbf16>, tensor<384x256xbf16>) -> tensor<512x384xf32>
  return
}
""",
    "tc.block_scaled_matmul": """
func.func @example(%a: tensor<7168x16384xf4E2M1FN>, %sa: tensor<7168x1024xf8E4M3FN>,
    %b: tensor<16384xf4E2M1FN>, %sb: tensor<1024xf8E4M3FN>, %ga: tensor<f32>, %gb: tensor<f32>) {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %ga, %gb) {block = 16 : i64,
      a_scale_layout = "row_major", b_scale_layout = "row_major",
      operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>}
      : (tensor<7168x16384xf4E2M1FN>, tensor<7168x1024xf8E4M3FN>, tensor<16384xf4E2M1FN>,
         tensor<1024xf8E4M3FN>, tensor<f32>, tensor<f32>) -> tensor<7168xf16>
  return
}
""",
    "tc.scales_to_blocked": """
func.func @example(%s: tensor<7168x1024xf8E4M3FN>) {
  %b = "tc.scales_to_blocked"(%s)
      : (tensor<7168x1024xf8E4M3FN>) -> tensor<56x256x512xf8E4M3FN>
  return
}
""",
    "tc.pack_codes": """
func.func @example(%codes: tensor<7168x16384xi8>) {
  %a = "tc.pack_codes"(%codes) : (tensor<7168x16384xi8>) -> tensor<7168x16384xf4E2M1FN>
  return
}
""",
    "tc.unpack_codes": """
func.func @example(%a: tensor<7168x16384xf6E2M3FN>) {
  %codes = "tc.unpack_codes"(%a) : (tensor<7168x16384xf6E2M3FN>) -> tensor<7168x16384xi8>
  return
}
""",
    "tc.mma": """
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @example(%d: !d, %a: !a, %b: !b, %accumulate: i1) {
  "tc.mma"(%d, %a, %b, %accumulate) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
      : (!d, !a, !b, i1) -> ()
  return
}
""",
    "tc.mma_block_scale": """
!d = !tc.tmem<array<i64: 128, 16>, f32>
!a = !tc.smem<array<i64: 128, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 16, 128>, i8, "K", "128B">
!sf = !tc.tmem<array<i64: 128, 64>, i8>
func.func @example(%d: !d, %a: !a, %b: !b, %sfa: !sf, %sfb: !sf, %accumulate: i1) {
  "tc.mma_block_scale"(%d, %a, %b, %sfa, %sfb, %accumulate) {kind = "mxf4nvf4", a_type = "e2m1",
      b_type = "e2m1", scale_type = "ue4m3", block = 16 : i64, a_slice = 1 : i64, b_slice = 1 : i64,
      sfa_column = 4 : i64, sfb_column = 4 : i64, sfa_id = 0 : i64, sfb_id = 0 : i64}
      : (!d, !a, !b, !sf, !sf, i1) -> ()
  return
}
""",
    "tc.cp_scales": """
!source = !tc.smem<array<i64: 128, 16>, i8, "K", "NONE">
!target = !tc.tmem<array<i64: 128, 64>, i8>
func.func @example(%source: !source, %target: !target, %column: index) {
  "tc.cp_scales"(%source, %target, %column) {block = 3 : i64} : (!source, !target, index) -> ()
  return
}
""",
    "tc.smem_tile": """
func.func @example() {
  %ring = "tc.smem_tile"() {offset = 1024 : i64}
      : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  return
}
""",
    "tc.tmem_tile": """
func.func @example() {
  %base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  %d = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}
""",
    "tc.tmem_alloc": """
func.func @example() {
  %base = "tc.tmem_alloc"() {columns = 128 : i64, slot = 0 : i64, warp = 5 : i64}
      : () -> !tc.tmem_base
  return
}
""",
    "tc.tmem_relinquish": """
func.func @example() {
  "tc.tmem_relinquish"() : () -> ()
  return
}
""",
    "tc.tmem_dealloc": """
func.func @example() {
  %base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base) {columns = 128 : i64} : (!tc.tmem_base) -> ()
  return
}
""",
    "tc.mbarrier_init": """
func.func @example() {
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 8 : i64}
      : () -> !tc.ring<4 : i64, !tc.mbarrier>
  return
}
""",
    "tc.slot": """
func.func @example(%full: !tc.ring<4 : i64, !tc.mbarrier>, %i: index) {
  %bar = "tc.slot"(%full, %i) : (!tc.ring<4 : i64, !tc.mbarrier>, index) -> !tc.mbarrier
  return
}
""",
    "tc.make_tensor_map": """
func.func @example(%x: memref<1x56x56x64xf16>) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  return
}
""",
    "tc.tma_load": """
!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @example(%x: memref<1x56x56x64xf16>, %tile: !tile, %full: !tc.mbarrier, %i: index) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  "tc.tma_load"(%map, %i, %i, %i, %i, %tile, %full) {row = 96 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>}
      : (!tc.tensor_map, index, index, index, index, !tile, !tc.mbarrier) -> ()
  return
}
""",
    "tc.cp": """
!source = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!target = !tc.tmem<array<i64: 128, 64>, f16>
func.func @example(%source: !source, %target: !target) {
  "tc.cp"(%source, %target) {slice = 3 : i64} : (!source, !target) -> ()
  return
}
""",
    "tc.tmem_ld": """
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @example(%d: !d, %quarter: index, %column: index) {
  %v = "tc.tmem_ld"(%d, %quarter, %column) : (!d, index, index) -> vector<32x16xf32>
  return
}
""",
    "tc.tmem_wait": """
func.func @example() {
  "tc.tmem_wait"() {kind = "ld"} : () -> ()
  return
}
""",
    "tc.store_rows": """
!out = memref<1x56x56x64xf32>
func.func @example(%v: vector<32x16xf32>, %out: !out, %n: index, %p: index, %q: index, %k: index) {
  "tc.store_rows"(%v, %out, %n, %p, %q, %k) {rows = 30 : i64, row_dim = 2 : i64,
      operandSegmentSizes = array<i32: 1, 1, 4>}
      : (vector<32x16xf32>, !out, index, index, index, index) -> ()
  return
}
""",
    "tc.role": """
func.func @example(%done: !tc.mbarrier) {
  "tc.role"() ({
  ^bb0(%position: index):
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}
""",
    "tc.one_thread": """
!tile = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @example(%x: memref<256x512xf16>, %k: index, %m: index, %tile: !tile,
                   %full: !tc.mbarrier) {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 512, 256>,
      strides = array<i64: 1024>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<256x512xf16>) -> !tc.tensor_map
  "tc.one_thread"() ({
    "tc.mbarrier_expect_tx"(%full) {nbytes = 16384 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %k, %m, %tile, %full) {row = 0 : i64, nbytes = 16384 : i64,
        operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>}
        : (!tc.tensor_map, index, index, !tile, !tc.mbarrier) -> ()
  }) : () -> ()
  return
}
""",
    "tc.cp_async": """
!tile = !tc.staged<array<i64: 128, 64>, f16, "K", array<i64: 3, 4, 3>>
func.func @example(%x: memref<512x256xf16>, %m: index, %k: index, %tile: !tile) {
  "tc.cp_async"(%x, %m, %k, %tile) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>}
      : (memref<512x256xf16>, index, index, !tile) -> ()
  return
}
""",
    "tc.cp_async_commit": """
func.func @example() {
  "tc.cp_async_commit"() : () -> ()
  return
}
""",
    "tc.cp_async_wait": """
func.func @example() {
  "tc.cp_async_wait"() {pending = 2 : i64} : () -> ()
  return
}
""",
    "tc.zero_fragment": """
!c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
func.func @example() {
  %zero = "tc.zero_fragment"() : () -> !c
  return
}
""",
    "tc.load_fragment": """
!tile = !tc.staged<array<i64: 128, 64>, f16, "K", array<i64: 3, 4, 3>>
!a = !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k16.f16">
func.func @example(%tile: !tile) {
  %a = "tc.load_fragment"(%tile) {k = 16 : i64, via = "ldmatrix"} : (!tile) -> !a
  return
}
""",
    "tc.mma_sync": """
!a = !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 256, 16>, f16, "B", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
func.func @example(%a: !a, %b: !b, %c: !c) {
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}
""",
    "tc.store_fragment": """
!c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
func.func @example(%c: !c, %out: memref<500x512xf16>, %m: index, %n: index) {
  "tc.store_fragment"(%c, %out, %m, %n) {tails = "outer",
      operandSegmentSizes = array<i32: 1, 1, 2>}
      : (!c, memref<500x512xf16>, index, index) -> ()
  return
}
""",
    "tc.mbarrier_wait": """
func.func @example(%full: !tc.mbarrier, %phase: index) {
  "tc.mbarrier_wait"(%full, %phase) : (!tc.mbarrier, index) -> ()
  return
}
""",
    "tc.mbarrier_expect_tx": """
func.func @example(%full: !tc.mbarrier) {
  "tc.mbarrier_expect_tx"(%full) {nbytes = 24576 : i64} : (!tc.mbarrier) -> ()
  return
}
""",
    "tc.commit": """
func.func @example(%empty: !tc.mbarrier) {
  "tc.commit"(%empty) : (!tc.mbarrier) -> ()
  return
}
""",
    "tc.fence": """
func.func @example() {
  "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  return
}
""",
    "tc.cta_barrier": """
func.func @example() {
  "tc.cta_barrier"() : () -> ()
  return
}
""",
    "tc.lane_index": """
func.func @example() {
  %lane = "tc.lane_index"() : () -> vector<32xindex>
  return
}
""",
    "tc.store_lanes": """
!out = memref<1x56x56x64xf32>
!lanes = vector<32xindex>
func.func @example(%v: vector<32x16xf32>, %out: !out, %n: !lanes, %p: !lanes, %q: !lanes,
                   %k: index) {
  "tc.store_lanes"(%v, %out, %n, %p, %q, %k) {operandSegmentSizes = array<i32: 1, 1, 3, 1>}
      : (vector<32x16xf32>, !out, !lanes, !lanes, !lanes, index) -> ()
  return
}
""",
    "tc.lane_masks": """
func.func @example() {
  %masks = "tc.lane_masks"() {count = 9 : i64, offset = 81920 : i64} : () -> !tc.lane_mask_table
  return
}
""",
    "tc.write_lane_mask": """
func.func @example(%masks: !tc.lane_mask_table, %tap: index, %quarter: index, %on: vector<32xi1>) {
  "tc.write_lane_mask"(%masks, %tap, %quarter, %on)
      : (!tc.lane_mask_table, index, index, vector<32xi1>) -> ()
  return
}
""",
    "tc.enable_lanes": """
!d = !tc.tmem<array<i64: 128, 64>, f32>
!a = !tc.tmem<array<i64: 128, 64>, f16>
!b = !tc.smem<array<i64: 64, 64>, f16, "MN", "128B">
func.func @example(%d: !d, %masks: !tc.lane_mask_table, %tap: index, %a: !a, %b: !b, %t: i1) {
  %on = "tc.enable_lanes"(%d, %masks, %tap) : (!d, !tc.lane_mask_table, index) -> !d
  "tc.mma"(%on, %a, %b, %t) {a_slice = 0 : i64, b_slice = 0 : i64, ashift = true}
      : (!d, !a, !b, i1) -> ()
  return
}
""",
    "tc.tmem_st": """
!d = !tc.tmem<array<i64: 128, 64>, f32>
func.func @example(%v: vector<32x16xf32>, %d: !d, %quarter: index, %column: index) {
  "tc.tmem_st"(%v, %d, %quarter, %column) : (vector<32x16xf32>, !d, index, index) -> ()
  return
}
""",
    "tc.mbarrier_arrive": """
func.func @example(%ready: !tc.mbarrier) {
  "tc.mbarrier_arrive"(%ready) : (!tc.mbarrier) -> ()
  return
}
""",
    "tc.shift": """
func.func @example(%slab: !tc.tmem<array<i64: 128, 64>, f16>) {
  "tc.shift"(%slab) {slice = 3 : i64, quarter = 0 : i64}
      : (!tc.tmem<array<i64: 128, 64>, f16>) -> ()
  return
}
""",
    "tc.refresh": """
!halo = !tc.smem<array<i64: 16, 64>, f16, "K", "128B">
!slab = !tc.tmem<array<i64: 128, 64>, f16>
func.func @example(%halo: !halo, %slab: !slab) {
  "tc.refresh"(%halo, %slab) {slice = 3 : i64, row = 8 : i64} : (!halo, !slab) -> ()
  return
}
""",
}
