// Flags as LLVM's commands take them, with one dash.
// RUN: %tc-opt %s -canonicalize -cse -mlir-print-ir-after=cse -o=%t 2>&1 | %filecheck %s --check-prefix=DUMP
// RUN: %tc-opt %s '-pass-pipeline=builtin.module(func.func(canonicalize))' | %filecheck %s --check-prefix=FOLDED
// RUN: %tc-opt %s -canonicalize='{top-down=false}' -mlir-print-op-generic | %filecheck %s --check-prefix=GENERIC
// RUN: %tc-opt -canonicalize -validate-each -seed 3 -o - %s 2>&1 | %filecheck %s --check-prefix=SEED
// RUN: %tc-opt -mlir-elide-elementsattrs-if-larger 4 %s | %filecheck %s --check-prefix=ELIDED
// RUN: %tc-opt %s -affine-loop-tile=tile-size=3 -cse -dump-pass-pipeline 2>&1 | %filecheck %s --check-prefix=NESTED
// RUN: %tc-opt -help | %filecheck %s --check-prefix=HELP
// RUN: %exits 3 %tc-opt %s -canonicalise | %filecheck %s --check-prefix=UNKNOWN
// RUN: %exits 3 %tc-opt %s -validate-each -seed -1 | %filecheck %s --check-prefix=NEGATIVE

// DUMP: IR Dump After cse (cse)
// FOLDED-NOT: dense<2.0
// FOLDED: dense<5.0
// GENERIC: "func.return"
// SEED: seed 3
// SEED: canonicalize {{.*}} equal
// ELIDED: dense_resource<__elided__>
// NESTED: builtin.module(func.func(affine-loop-tile{tile-size=3}),cse)
// HELP: usage: tc-opt
// UNKNOWN: error: unknown option or pass '--canonicalise'; did you mean '--canonicalize'?
// NEGATIVE: error: expected a seed of at least 0, got -1
func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %t = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %x = arith.constant dense<2.0> : tensor<8xf32>
  %y = arith.constant dense<3.0> : tensor<8xf32>
  %z = arith.addf %x, %y : tensor<8xf32>
  %s = arith.addf %a, %t : tensor<8xf32>
  %r = arith.mulf %s, %z : tensor<8xf32>
  return %r : tensor<8xf32>
}
