// A thread quantises the blocks of its row: no shuffles.
// RUN: %tc-opt %s --split-input-file --convert-tc-to-nvvm | %filecheck %s

// amax, its sixth as e4m3, at least 1 if not 0; quotients by the scale as stored; NaN if not finite.
// CHECK-LABEL: llvm.func @nvfp4
// CHECK-COUNT-15: arith.maximumf
// CHECK-NOT: arith.maximumf
// CHECK: %[[FINITE:.*]] = arith.cmpf olt
// CHECK: %[[SIX:.*]] = arith.constant 6.000000e+00 : f32
// CHECK: arith.divf %{{.*}}, %[[SIX]]
// CHECK: llvm.inline_asm "cvt.rn.satfinite.e4m3x2.f32 $0, $2, $1;"
// CHECK: %[[CODE:.*]] = arith.maxui
// CHECK: llvm.inline_asm "cvt.rn.f16x2.e4m3x2 $0, $1;"
// CHECK: %[[INVERSE:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK: %[[NAN:.*]] = arith.constant 127 : i32
// CHECK: %[[SCALE:.*]] = arith.select %[[FINITE]], %[[CODE]], %[[NAN]]
// CHECK: %[[Q:.*]] = arith.mulf %{{.*}}, %[[INVERSE]]
// CHECK: %[[R:.*]] = llvm.intr.fma(%{{.*}}, %[[Q]], %{{.*}})
// CHECK: llvm.intr.fma(%[[R]], %{{.*}}, %[[Q]])
// CHECK: cvt.rn.satfinite.e2m1x2.f32 a, $2, $1;
// CHECK-NOT: shfl
// CHECK: st.global.u8
func.func @nvfp4(%x: memref<64x64xf32>, %codes: memref<64x32xi8>, %scales: memref<1x1x512xf8E4M3FN>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x64xf32>, index, index) -> vector<32x16xf32>
    %q:2 = "tc.quantise_rows"(%v) : (vector<32x16xf32>) -> (vector<32x8xi8>, vector<32x1xf8E4M3FN>)
    "tc.store_rows"(%q#0, %codes, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x8xi8>, memref<64x32xi8>, index, index) -> ()
    "tc.store_scales"(%q#1, %scales, %c0, %c0) {rows = 64 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x1xf8E4M3FN>, memref<1x1x512xf8E4M3FN>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// The exponent of amax less 15; products by the power of two that undoes it.
// CHECK-LABEL: llvm.func @mxfp8
// CHECK-COUNT-31: arith.maximumf
// CHECK: %[[CODE:.*]] = arith.maxsi
// CHECK: %[[MOST:.*]] = arith.constant 254 : i32
// CHECK: arith.subi %[[MOST]], %[[CODE]]
// CHECK: %[[NAN:.*]] = arith.constant 255 : i32
// CHECK: arith.select %{{.*}}, %[[CODE]], %[[NAN]]
// CHECK: cvt.rn.satfinite.e5m2x2.f32
// CHECK: llvm.store %{{.*}} {alignment = 2 : i64} : i16
func.func @mxfp8(%x: memref<64x64xf32>, %codes: memref<64x64xf8E5M2>, %scales: memref<1x1x512xf8E8M0FNU>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x64xf32>, index, index) -> vector<32x64xf32>
    %q:2 = "tc.quantise_rows"(%v) : (vector<32x64xf32>) -> (vector<32x64xf8E5M2>, vector<32x2xf8E8M0FNU>)
    "tc.store_rows"(%q#0, %codes, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x64xf8E5M2>, memref<64x64xf8E5M2>, index, index) -> ()
    "tc.store_scales"(%q#1, %scales, %c0, %c0) {rows = 64 : i64, scales = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x2xf8E8M0FNU>, memref<1x1x512xf8E8M0FNU>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// rceil: a mantissa beyond that of 448, 1.75, carries to the exponent. Of five scales a thread has the
// last and one of padding: before number 4 all of a pair are stored, from 4 on one, the other as 0.
// CHECK-LABEL: llvm.func @rceil
// CHECK-COUNT-31: arith.maximumf
// CHECK: %[[CARRY:.*]] = arith.constant 2097151 : i32
// CHECK: arith.addi %{{.*}}, %[[CARRY]] : i32
// CHECK: arith.maxsi
// CHECK: cvt.rn.satfinite.e4m3x2.f32
// CHECK: %[[BEFORE:.*]] = arith.cmpi ult, %[[FIRST:.*]], %c4_i32
// CHECK: %[[WHOLE:.*]] = arith.select %[[BEFORE]], %[[WORD:.*]], %c0_i32
// CHECK: %[[PART:.*]] = arith.andi %[[WORD]], %c255_i32
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[FIRST]], %c4_i32
// CHECK: arith.select %[[LAST]], %[[PART]], %[[WHOLE]]
func.func @rceil(%x: memref<64x160xf32>, %codes: memref<64x160xf8E4M3FN>, %scales: memref<1x2x512xf8E8M0FNU>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x160xf32>, index, index) -> vector<32x64xf32>
    %q:2 = "tc.quantise_rows"(%v) {scale_rounding = "rceil"} : (vector<32x64xf32>) -> (vector<32x64xf8E4M3FN>, vector<32x2xf8E8M0FNU>)
    "tc.store_rows"(%q#0, %codes, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x64xf8E4M3FN>, memref<64x160xf8E4M3FN>, index, index) -> ()
    "tc.store_scales"(%q#1, %scales, %c0, %c4) {rows = 64 : i64, scales = 5 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x2xf8E8M0FNU>, memref<1x2x512xf8E8M0FNU>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
