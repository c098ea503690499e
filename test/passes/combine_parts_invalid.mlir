// RUN: %tc-opt --split-input-file --verify-diagnostics --convert-to-simt %s

// expected-error @+1 {{expected a function of one tc.combine_parts, got tc.combine_parts, arith.negf, func.return}}
func.func @f(%p: tensor<4x1x8x1x64xf32>, %s: tensor<4x1x8x1xf32>) -> tensor<1x8x1x64xf32> {
  %o, %lse = "tc.combine_parts"(%p, %s) {layout = "bhmd"} : (tensor<4x1x8x1x64xf32>, tensor<4x1x8x1xf32>) -> (tensor<1x8x1x64xf32>, tensor<1x8x1xf32>)
  %n = arith.negf %o : tensor<1x8x1x64xf32>
  return %n : tensor<1x8x1x64xf32>
}

// -----

func.func @f(%p: tensor<129x1x8x1x64xf32>, %s: tensor<129x1x8x1xf32>) -> tensor<1x8x1x64xf32> {
  // expected-error @+1 {{expected at most 128 parts, got 129: a thread has the logarithms of all in its 255 registers; take larger parts}}
  %o, %lse = "tc.combine_parts"(%p, %s) {layout = "bhmd"} : (tensor<129x1x8x1x64xf32>, tensor<129x1x8x1xf32>) -> (tensor<1x8x1x64xf32>, tensor<1x8x1xf32>)
  return %o : tensor<1x8x1x64xf32>
}
