// RUN: %tc-opt %s --canonicalize --cse --mlir-print-ir-before=cse -o %t 2>&1 | %filecheck %s --check-prefix=BEFORE
// RUN: %tc-opt %s --canonicalize --cse --mlir-print-ir-after=canonicalize,cse -o %t 2>&1 | %filecheck %s --check-prefix=AFTER
// RUN: %tc-opt %s --canonicalize --cse --mlir-print-ir-after-all -o %t 2>&1 | %filecheck %s --check-prefix=AFTER
// RUN: %tc-opt %s --canonicalize --cse --mlir-print-ir-tree-dir=%t.tree -o %t
// RUN: %filecheck %s --check-prefix=FIRST --input-file=%t.tree/1_canonicalize.mlir
// RUN: %filecheck %s --check-prefix=FIRST --input-file=%t.tree/2_cse.mlir
// RUN: %exits 3 %tc-opt %s --cse --mlir-print-ir-after=csee | %filecheck %s --check-prefix=UNKNOWN
// RUN: %tc-opt %s --canonicalize --cse --mlir-print-ir-after-all --mlir-print-ir-after-change -o %t 2>&1 | %filecheck %s --check-prefix=CHANGE --allow-empty
// RUN: not %tc-opt %s --tile-gemm=n-tile=3 --mlir-print-ir-after-failure 2>&1 | %filecheck %s --check-prefix=FAILED
// RUN: %tc-opt %s -canonicalize -cse -dump-pass-pipeline -o %t 2>&1 | %filecheck %s --check-prefix=PIPELINE

// PIPELINE: builtin.module(canonicalize,cse)
// BEFORE: IR Dump Before cse
// BEFORE: func.func @f
// BEFORE-NOT: IR Dump
// AFTER: IR Dump After canonicalize
// AFTER: IR Dump After cse
// CHANGE-NOT: IR Dump
// FAILED: IR Dump After Failed tile-gemm
// FIRST: func.func @f
// UNKNOWN: error: --mlir-print-ir-before/after: 'csee' is not in the pipeline; did you mean 'cse'?
func.func @f() {
  return
}
