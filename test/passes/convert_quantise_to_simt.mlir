// A thread quantises a block: loads of 16 bytes, codes in words, the scale as a byte.
// RUN: %tc-opt %s --split-input-file --verify-diagnostics --convert-to-simt | %filecheck %s

// 200 rows of 4 blocks: a thread each.
// CHECK: gpu.module @kernels
// CHECK: llvm.func @rows(%[[IN:[a-z0-9]*]]: !llvm.ptr<1> {{{.*}}}, %[[CODES:[a-z0-9]*]]: !llvm.ptr<1> {{{.*}}}, %[[SCALES:[a-z0-9]*]]: !llvm.ptr<1> {{{.*}}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>, tc.grid = array<i64: 4, 1, 1>
// CHECK: arith.cmpi ult, %{{.*}}, %c800_i32
// CHECK: scf.if
// CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-COUNT-8: llvm.store %{{.*}} : i32
// CHECK: st.global.u8
// CHECK-NOT: scf.if
func.func @rows(%y: tensor<2x100x128xf32>) -> (tensor<2x100x128xf8E4M3FN>, tensor<2x100x4xf8E8M0FNU>) {
  %q, %s = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x100x128xf32>) -> (tensor<2x100x128xf8E4M3FN>, tensor<2x100x4xf8E8M0FNU>)
  return %q, %s : tensor<2x100x128xf8E4M3FN>, tensor<2x100x4xf8E8M0FNU>
}

// -----

// Blocks of 128 x 4: 2 x 256 x 8 threads, those beyond 200 rows or 5 scales store a zero.
// CHECK: llvm.func @blocks(
// CHECK-SAME: tc.grid = array<i64: 8, 1, 1>
// CHECK: scf.if
// CHECK-COUNT-2: cvt.rn.satfinite.e2m1x2.f32 a, $2, $1
// CHECK: st.global.u8
// CHECK: scf.if
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: st.global.u8{{.*}}%[[ZERO]]
func.func @blocks(%y: tensor<200x80xf32>, %norm: tensor<f32>) -> (tensor<200x80xf4E2M1FN>, tensor<2x2x512xf8E4M3FN>) {
  %q, %s = "tc.quantise_blocks"(%y, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<200x80xf32>, tensor<f32>) -> (tensor<200x80xf4E2M1FN>, tensor<2x2x512xf8E4M3FN>)
  return %q, %s : tensor<200x80xf4E2M1FN>, tensor<2x2x512xf8E4M3FN>
}

// -----

module attributes {tc.target = "sm_90"} {
  func.func @no_fp4(%y: tensor<8x32xf32>) -> (tensor<8x32xf4E2M1FN>, tensor<8x2xf8E4M3FN>) {
    // expected-error @+1 {{expected codes that sm_90 converts to, got f4E2M1FN (cvt to e2m1x2 needs sm_100a, PTX ISA 9.7.9.21); take sm_100a, or return the values}}
    %q, %s = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x32xf32>) -> (tensor<8x32xf4E2M1FN>, tensor<8x2xf8E4M3FN>)
    return %q, %s : tensor<8x32xf4E2M1FN>, tensor<8x2xf8E4M3FN>
  }
}

// -----

module attributes {tc.target = "sm_80"} {
  func.func @no_fp8(%y: tensor<8x32xf32>) -> (tensor<8x32xf8E5M2>, tensor<8x1xf8E8M0FNU>) {
    // expected-error @+1 {{expected codes that sm_80 converts to, got f8E5M2 (cvt to fp8 needs sm_89, PTX ISA 9.7.9.21); take sm_90 or sm_90a or sm_100a, or return the values}}
    %q, %s = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x32xf32>) -> (tensor<8x32xf8E5M2>, tensor<8x1xf8E8M0FNU>)
    return %q, %s : tensor<8x32xf8E5M2>, tensor<8x1xf8E8M0FNU>
  }
}

// -----

func.func @behind(%x: tensor<8x32xf32>) -> (tensor<8x32xf8E5M2>, tensor<8x1xf8E8M0FNU>) {
  %y = math.exp %x : tensor<8x32xf32>
  // expected-error @+1 {{expected nothing beside tc.quantise_blocks in its launch, got math.exp, func.return (a thread reads a block of f32 in memory); return the values and quantise them in a separate function; the pipelines of products also quantise the result of a product}}
  %q, %s = "tc.quantise_blocks"(%y) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<8x32xf32>) -> (tensor<8x32xf8E5M2>, tensor<8x1xf8E8M0FNU>)
  return %q, %s : tensor<8x32xf8E5M2>, tensor<8x1xf8E8M0FNU>
}
