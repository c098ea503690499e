// Ways to name passes, and what is printed.
// RUN: %tc-opt %s --canonicalize --cse | %filecheck %s
// RUN: %tc-opt %s --pass-pipeline="builtin.module(func.func(canonicalize,cse))" | %filecheck %s
// RUN: %tc-opt --canonicalize < %s | %filecheck %s
// RUN: %tc-opt --canonicalize - -o - < %s | %filecheck %s
// RUN: %tc-opt %s --canonicalize --mlir-print-op-generic | %filecheck %s --check-prefix=GENERIC
// RUN: %tc-opt %s --canonicalize --mlir-print-debuginfo | %filecheck %s --check-prefix=LOC
// RUN: %tc-opt %s --canonicalize="max-iterations=3" --mlir-timing -o %t 2>&1 | %filecheck %s --check-prefix=TIMING
// RUN: %filecheck %s --input-file=%t

// CHECK-LABEL: func.func @twice
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %arg0, %arg0
// CHECK-NEXT: return %[[SUM]]
// GENERIC: "func.func"()
// LOC: passes.mlir":{{[0-9]+}}:
// TIMING: timing, seconds
// TIMING: ({{.*}}%) canonicalize
func.func @twice(%x: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %y = arith.addi %x, %zero : i32
  %z = arith.addi %y, %x : i32
  return %z : i32
}
