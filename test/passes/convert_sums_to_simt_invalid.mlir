// RUN: %tc-opt --split-input-file --verify-diagnostics --convert-to-simt %s

func.func @f(%p: tensor<3x40x24xf32>) -> tensor<40x24xf8E4M3FN> {
  %c = "tc.sum_parts"(%p) : (tensor<3x40x24xf32>) -> tensor<40x24xf32>
  %d = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %t = arith.truncf %s : f32 to f8E4M3FN
    // expected-error @+1 {{expected arith.negf of f32, f16, bf16, i16 or i32 in an epilogue of sums in parts, got f8E4M3FN}}
    %u = arith.negf %t : f8E4M3FN
    "tc.yield"(%u) : (f8E4M3FN) -> ()
  }) : (tensor<40x24xf32>) -> tensor<40x24xf8E4M3FN>
  return %d : tensor<40x24xf8E4M3FN>
}

// -----

// expected-error @+1 {{expected a function of one tc.sum_parts, and a tc.epilogue of it or none, got tc.sum_parts, arith.negf, func.return}}
func.func @f(%p: tensor<3x40x24xf32>) -> tensor<40x24xf32> {
  %c = "tc.sum_parts"(%p) : (tensor<3x40x24xf32>) -> tensor<40x24xf32>
  %d = arith.negf %c : tensor<40x24xf32>
  return %d : tensor<40x24xf32>
}
