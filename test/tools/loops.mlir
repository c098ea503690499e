// Upstream's tiling of a product, and what peels and hoists, executed after every pass.
// RUN: %tc-opt %s --transform-interpreter --canonicalize --scf-for-loop-peeling --loop-invariant-code-motion --validate-each -o %t.mlir 2>&1 | %filecheck %s
// RUN: sed 's/tile_using_for %0 tile_sizes .4, 10, 4./tile_using_forall %0 tile_sizes [4, 10]/;s/%%t, %%l:3/%%t, %%l/;s/, !transform.any_op, !transform.any_op)$/)/' %s > %t.forall.mlir
// RUN: %tc-opt %t.forall.mlir --transform-interpreter --canonicalize --validate-each -o %t 2>&1 | %filecheck %s --check-prefix=FORALL
// A program that has loops from the start; and one whose sums end after the first of four tiles.
// RUN: %tc-opt %t.mlir --cse --validate-each -o %t 2>&1 | %filecheck %s --check-prefix=AGAIN
// RUN: not %tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --transform-interpreter --canonicalize --test-break-step --cse --validate-each -o %t 2>&1 | %filecheck %s --check-prefix=BROKEN
// No claim is made about branches.
// RUN: %exits 2 %tc-opt %t.mlir --convert-scf-to-cf --validate-each | %filecheck %s --check-prefix=BRANCHES

// CHECK: (input) {{.*}} reference
// CHECK: transform-interpreter {{.*}} equal
// CHECK: canonicalize {{.*}} equal
// CHECK: scf-for-loop-peeling {{.*}} equal
// CHECK: loop-invariant-code-motion {{.*}} equal
// CHECK: held: 5 steps
// FORALL: transform-interpreter {{.*}} equal
// FORALL: canonicalize {{.*}} equal
// FORALL: held: 3 steps
// AGAIN: (input) {{.*}} reference
// AGAIN-NEXT: 1 pass changed nothing: cse
// AGAIN-NEXT: held: executed, no pass to compare
// BROKEN: canonicalize {{.*}} equal
// BROKEN: test-break-step {{.*}} different
// BRANCHES: convert-scf-to-cf {{.*}} incomplete
// BRANCHES: cf.br: no rule at tensor level
// BRANCHES: incomplete: first at pass 1
module attributes {transform.with_named_sequence} {
  func.func @f(%a: tensor<8x16xf32>, %b: tensor<16x24xf32>) -> tensor<8x24xf32> {
    %z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x24xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x24xf32>) -> tensor<8x24xf32>
    %r = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x24xf32>) outs(%f : tensor<8x24xf32>) -> tensor<8x24xf32>
    return %r : tensor<8x24xf32>
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %0 = transform.structured.match ops{["linalg.matmul"]} in %m : (!transform.any_op) -> !transform.any_op
    %t, %l:3 = transform.structured.tile_using_for %0 tile_sizes [4, 10, 4] : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield
  }
}
