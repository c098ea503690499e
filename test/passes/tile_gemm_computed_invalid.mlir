// Operands that no kernel computes.
// RUN: %tc-opt %s --split-input-file --tile-gemm --verify-diagnostics
// RUN: %tc-opt %s --split-input-file --target=sm_90a --tile-gemm --verify-diagnostics

#turned = affine_map<(n, k) -> (k, n)>
#all = affine_map<(n, k) -> (n, k)>
func.func @sine(%x: tensor<128x128xf16>, %w: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %e = tensor.empty() : tensor<128x128xf16>
  %f = linalg.generic {indexing_maps = [#turned, #all], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<128x128xf32>) outs(%e : tensor<128x128xf16>) {
  ^bb0(%q: f32, %o: f16):
    %n = math.sin %q : f32
    %m = arith.truncf %n : f32 to f16
    linalg.yield %m : f16
  } -> tensor<128x128xf16>
  // expected-error @+1 {{got math.sin; make the operand an argument, or take the pipeline layers}}
  %r = "tc.matmul"(%x, %f) {a_layout = "mk", b_layout = "nk"} : (tensor<128x128xf16>, tensor<128x128xf16>) -> tensor<128x128xf32>
  return %r : tensor<128x128xf32>
}
