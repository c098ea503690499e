// A pass that dies in native code while the program is executed after every pass: the verdict is its.
// RUN: %exits 1 %own-tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --canonicalize --test-crash --validate-each=%t.json | %filecheck %s
// RUN: %filecheck %s --check-prefix=REPORT --input-file=%t.json

// CHECK: error: 'test-crash' was ended by SIGSEGV in native code
// CHECK-NEXT: note: the program before it was saved
// CHECK-NEXT: different: first at pass 2, test-crash
// REPORT: "name": "test-crash"
// REPORT: "verdict": "different"
// REPORT: "compared": "native code died"
// REPORT: "error": "'test-crash' was ended by SIGSEGV in native code"
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %r = arith.addf %a, %a : tensor<4xf32>
  return %r : tensor<4xf32>
}
