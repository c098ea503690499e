// A CTA of 128 threads makes up to four blocks; each thread moves the four scales of a row.
// RUN: %tc-opt %s --split-input-file --convert-to-simt | %filecheck %s

// 130 rows are two blocks down, 8 scales are two across: one CTA makes both.
// CHECK: gpu.module @kernels
// CHECK: llvm.func @scales(%[[IN:.*]]: !llvm.ptr<1> {{{.*}}}, %[[OUT:.*]]: !llvm.ptr<1> {{{.*}}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, tc.grid = array<i64: 1, 2, 1>
// CHECK: %[[T:.*]] = nvvm.read.ptx.sreg.tid.x
// Row 128 * block row + 32 * (tid % 4) + tid / 4.
// CHECK: %[[C3:.*]] = arith.constant 3 : i32
// CHECK: %[[QUARTER:.*]] = arith.andi %[[T]], %[[C3]]
// CHECK: %[[C2:.*]] = arith.constant 2 : i32
// CHECK: %[[LANE:.*]] = arith.shrui %[[T]], %[[C2]]
// CHECK: %[[DOWN:.*]] = arith.muli %{{.*}}, %c128_i32
// CHECK: %[[Q32:.*]] = arith.muli %[[QUARTER]], %c32_i32
// CHECK: %[[FIRST:.*]] = arith.addi %[[DOWN]], %[[Q32]]
// CHECK: %[[ROW:.*]] = arith.addi %[[FIRST]], %[[LANE]]
// CHECK: arith.minui %[[ROW]], %c129_i32
// CHECK: %[[WORDS:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK: %[[W0:.*]] = llvm.extractelement %[[WORDS]]
// CHECK: %[[W1:.*]] = llvm.extractelement %[[WORDS]]
// Rows that the operand does not have are zeros.
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]], %c130_i32
// CHECK: %[[S0:.*]] = arith.select %[[INSIDE]], %[[W0]], %c0
// CHECK: llvm.store %[[S0]], %[[AT:.*]] : i32
// CHECK: %[[S1:.*]] = arith.select %[[INSIDE]], %[[W1]], %c0
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[AT]][%c512
// CHECK: llvm.store %[[S1]], %[[NEXT]] : i32
func.func @scales(%s: tensor<130x8xf8E4M3FN>) -> tensor<2x2x512xf8E4M3FN> {
  %b = "tc.scales_to_blocked"(%s) : (tensor<130x8xf8E4M3FN>) -> tensor<2x2x512xf8E4M3FN>
  return %b : tensor<2x2x512xf8E4M3FN>
}

// -----

// Another function stays as it is.
// CHECK: func.func @other
// CHECK-NOT: gpu.module
func.func @other(%s: tensor<130x8xf8E4M3FN>) -> tensor<130x8xf8E4M3FN> {
  return %s : tensor<130x8xf8E4M3FN>
}
