// RUN: %tc-opt %s --split-input-file --constants-to-arguments --verify-diagnostics

func.func @type(%x: tensor<2xi5>) -> tensor<2xi5> {
  // expected-error @+1 {{expected a constant tensor with elements of f16, bf16,}}
  %w = arith.constant dense<[1, 2]> : tensor<2xi5>
  %y = arith.addi %x, %w : tensor<2xi5>
  return %y : tensor<2xi5>
}

// -----

func.func @sparse(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{expected a constant dense<…> or dense_resource<…>, got sparse<1, 2.000000e+00> : tensor<2xf32> (its bytes become a buffer that kernels read); write all its elements}}
  %w = arith.constant sparse<[[1]], [2.0]> : tensor<2xf32>
  %y = arith.addf %x, %w : tensor<2xf32>
  return %y : tensor<2xf32>
}
