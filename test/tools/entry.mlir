// Of several public functions --entry keeps one, with what it calls; without it nothing is chosen quietly.
// RUN: %tc-opt %s --entry=second | %filecheck %s --check-prefix=SECOND
// RUN: %tc-opt %s --entry=both --pipeline=gemm --emit=launches | %filecheck %s --check-prefix=BOTH
// RUN: %tc-opt %s --entry=part --split-layers 2>/dev/null | %filecheck %s --check-prefix=PART
// RUN: %exits 3 %tc-opt %s --pipeline=gemm | %filecheck %s --check-prefix=CUT
// RUN: %exits 3 %tc-opt %s --validate-each | %filecheck %s --check-prefix=EXECUTED
// RUN: %exits 3 %tc-opt %s --entry=secnd | %filecheck %s --check-prefix=UNKNOWN
// RUN: %exits 3 %tc-opt %s --entry=both --canonicalize --raise-to-tc --mlir-pass-pipeline-crash-reproducer=%t | %filecheck %s --check-prefix=SAVED
// RUN: %filecheck %s --check-prefix=REPRODUCER < %t
// RUN: %tc-opt %s --entry=both --split-layers 2>/dev/null | %exits 3 %tc-opt --entry=both_0_matmul | %filecheck %s --check-prefix=LAUNCH

// SECOND-NOT: {{@both|@part}}
// SECOND: func.func @second(

// A public function that is called is inlined like a private one.
// BOTH: launch {{ *}}computes
// BOTH-NEXT: both_0_matmul {{ *}}matmul
// BOTH-NEXT: both_1_matmul {{ *}}matmul

// A private function is a program, too, where it is named.
// PART-NOT: {{@both|@second}}
// PART: func.func @part(

// CUT: entry.mlir:{{[0-9]+}}:8: error: a program of several launches must be the only one in its module (buffers are
// CUT-SAME: numbered once per module), got @second, @both; choose the program by --entry=both (tc-opt) or entry='both' (Python)
// EXECUTED: error: {{.*}}expected one function with a body {{.*}}got @second, @both; choose the program by --entry=second
// UNKNOWN: error: {{.*}}entry: expected a func.func with a body: @part, @second, @both, got 'secnd'; did you mean 'second'?
// SAVED: expected exactly one contraction
// REPRODUCER: func.func private @second(
// REPRODUCER: func.func @both(
// LAUNCH: error: {{.*}}entry: expected a program, got @both_0_matmul, one launch of several (tc.order)

func.func private @part(%x: tensor<16x16xf16>, %w: tensor<16x16xf16>) -> tensor<16x16xf32> {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %c = linalg.matmul ins(%x, %w : tensor<16x16xf16>, tensor<16x16xf16>) outs(%z : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %c : tensor<16x16xf32>
}
func.func @second(%x: tensor<16x16xf32>, %w: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  %c = linalg.matmul ins(%x, %w : tensor<16x16xf32>, tensor<16x32xf32>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %c : tensor<16x32xf32>
}
func.func @both(%x: tensor<16x16xf16>, %w: tensor<16x16xf16>, %v: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %h = func.call @part(%x, %w) : (tensor<16x16xf16>, tensor<16x16xf16>) -> tensor<16x16xf32>
  %y = func.call @second(%h, %v) : (tensor<16x16xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}
