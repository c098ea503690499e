// A pass that dies in native code: named, saved, and run again from what was saved.
// RUN: %exits 4 %own-tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --canonicalize --test-crash --cse --mlir-pass-pipeline-crash-reproducer=%t.mlir | %filecheck %s --check-prefix=CRASH
// RUN: %filecheck %s --check-prefix=SAVED --input-file=%t.mlir
// RUN: %exits 4 %own-tc-opt %t.mlir --load-pass-plugin=%S/Inputs/plugin.py --run-reproducer | %filecheck %s --check-prefix=CRASH
// RUN: %exits 3 %own-tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --test-refuse --mlir-pass-pipeline-crash-reproducer=%t.refused.mlir | %filecheck %s --check-prefix=REFUSED
// RUN: %filecheck %s --check-prefix=SAVED-REFUSED --input-file=%t.refused.mlir

// CRASH: error: 'test-crash' was ended by SIGSEGV in native code
// CRASH-NEXT: note: the program before it was saved: tc-opt --load-pass-plugin={{.*}}/plugin.py --run-reproducer
// SAVED: func.func @f
// SAVED-NOT: arith.addi
// SAVED: pipeline: "builtin.module(test-crash,cse)"
// REFUSED: crash.mlir:{{[0-9]+}}:1: error: expected something else, got a function
// REFUSED: note: in pass 'test-refuse'
// REFUSED: note: the program before 'test-refuse' was saved
// SAVED-REFUSED: pipeline: "builtin.module(test-refuse)"



func.func @f() {
  %x = arith.constant 1 : i32
  %y = arith.addi %x, %x : i32
  return
}
