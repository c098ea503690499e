// RUN: %tc-opt %s --canonicalize --mlir-elide-elementsattrs-if-larger=3 | %filecheck %s
// RUN: %tc-opt %s --canonicalize --mlir-elide-elementsattrs-if-larger=4 | %filecheck %s --check-prefix=WHOLE

// CHECK: dense_resource<__elided__> : tensor<4xf32>
// WHOLE: dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
func.func @f() -> tensor<4xf32> {
  %c = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %c : tensor<4xf32>
}
