// A matrix that TMA cannot read: its rows are no multiple of 16 bytes, those of the result are.
// RUN: %tc-opt --verify-diagnostics --tile-gemm="{n-tile=48 store=tma}" %s

func.func @f(%a: tensor<40x24xf16>, %b: tensor<36x24xf16>, %c: tensor<40x36xf16>) -> tensor<40x36xf32> {
  // expected-remark @+1 {{epilogue-tile=32x16 (auto: a warp's rows, the widest swizzle span that divides a tile's; 4 in shared memory, a warp stores each)}}
  %s = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<40x24xf16>, tensor<36x24xf16>) -> tensor<40x36xf32>
  %y = "tc.epilogue"(%s) ({
  ^bb0(%sum: f32):
    // expected-remark @+1 {{threads load their rows of this matrix: expected f16, bf16, f32, i32 and rows of a multiple of 16 in [16, 1099511627760] bytes for TMA, got f16 and 72}}
    %r = "tc.element"(%c) {map = affine_map<(m, n) -> (m, n)>} : (tensor<40x36xf16>) -> f16
    %w = arith.extf %r : f16 to f32
    %t = arith.addf %sum, %w : f32
    "tc.yield"(%t) : (f32) -> ()
  }) : (tensor<40x36xf32>) -> tensor<40x36xf32>
  return %y : tensor<40x36xf32>
}
