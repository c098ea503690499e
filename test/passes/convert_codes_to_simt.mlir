// Kernels that pack codes of 4 bits and unpack codes of 6, one to a byte.
// RUN: %tc-opt %s --split-input-file --convert-to-simt | %filecheck %s

// 192 codes, 16 a thread: four words in, two out.
// CHECK: llvm.func @pack(%[[IN:.*]]: !llvm.ptr<1> {{{.*}}}, %[[OUT:.*]]: !llvm.ptr<1> {{{.*}}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>, tc.grid = array<i64: 1, 1, 1>
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c12_i32
// CHECK: scf.if %[[INSIDE]]
// CHECK: llvm.getelementptr %[[IN]]
// CHECK: llvm.load {{.*}} -> vector<4xi32>
// CHECK: llvm.getelementptr %[[OUT]]
// The low half of each byte counts.
// CHECK: %[[LOW:.*]] = arith.constant 252645135 : i32
// CHECK: arith.andi %{{.*}}, %[[LOW]]
// CHECK-COUNT-2: llvm.store %{{.*}} : i32, !llvm.ptr<1>
// CHECK-NOT: llvm.store
func.func @pack(%c: tensor<3x64xi8>) -> tensor<3x64xf4E2M1FN> {
  %p = "tc.pack_codes"(%c) : (tensor<3x64xi8>) -> tensor<3x64xf4E2M1FN>
  return %p : tensor<3x64xf4E2M1FN>
}

// -----

// Four codes of 6 bits are three bytes; less than 16 codes go byte by byte.
// CHECK: llvm.func @unpack(
// CHECK: arith.cmpi ult, %{{.*}}, %c1_i32
// CHECK: %[[B0:.*]] = llvm.inline_asm "ld.global.u8
// CHECK: %[[B1:.*]] = llvm.inline_asm "ld.global.u8
// CHECK: %[[B2:.*]] = llvm.inline_asm "ld.global.u8
// Code 1: two bits of byte 0, four of byte 1.
// CHECK: %[[HIGH:.*]] = arith.shrui %[[B0]], %c6_i32
// CHECK: %[[LEFT:.*]] = arith.shli %[[B1]], %c2_i32
// CHECK: arith.ori %[[HIGH]], %[[LEFT]]
// CHECK: arith.andi %[[B0]], %c63_i32
// CHECK-COUNT-4: "st.global.u8
func.func @unpack(%p: tensor<1x4xf6E2M3FN>) -> tensor<1x4xi8> {
  %c = "tc.unpack_codes"(%p) : (tensor<1x4xf6E2M3FN>) -> tensor<1x4xi8>
  return %c : tensor<1x4xi8>
}
