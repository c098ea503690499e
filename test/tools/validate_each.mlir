// RUN: %tc-opt %s --canonicalize --linalg-generalize-named-ops --validate-each=%t.json -o %t 2>&1 | %filecheck %s
// RUN: %filecheck %s --check-prefix=JSON --input-file=%t.json
// RUN: %tc-opt %s --linalg-generalize-named-ops --validate-each --inputs=random --seed=7 -o %t 2>&1 | %filecheck %s --check-prefix=RANDOM
// RUN: %exits 1 %tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --cse --test-break-constants --canonicalize --validate-each -o %t | %filecheck %s --check-prefix=BROKEN

// CHECK: # pass ops time verdict compared
// CHECK-NEXT: 0 (input) {{.*}} reference tensor rules, integers, seed 0
// CHECK-NEXT: 2 linalg-generalize-named-ops {{.*}} equal tensor rules, bit for bit with the input
// CHECK-NEXT: 1 pass changed nothing: canonicalize
// CHECK-NEXT: roofline, modelled 384 FLOP (f16), 256 B of HBM, 1.5 FLOP/B: at least {{.*}} us (HBM)
// CHECK-NEXT: held: 2 steps

// JSON: "schema": "tcir.report/1"
// JSON: "program": "matmul"
// JSON: "roofline": {
// JSON: "verdict": "held"

// RANDOM: reference tensor rules, random, seed 7
// RANDOM: held

// BROKEN: 2 test-break-constants {{.*}} different tensor rules, exact inputs must agree bit for bit
// BROKEN-NEXT: 24 of 24 elements; first: output 0 at [0, 0]: expected
// BROKEN-NEXT: 3 canonicalize {{.*}} not executed
// BROKEN-NEXT: 1 pass changed nothing: cse
// BROKEN-NEXT: roofline, modelled 384 FLOP
// BROKEN-NEXT: different: first at pass 2, test-break-constants: 24 of 24 elements
func.func @matmul(%a: tensor<4x8xf16>, %b: tensor<8x6xf16>) -> tensor<4x6xf32> {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %f = linalg.fill ins(%one : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x6xf16>) outs(%f : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
