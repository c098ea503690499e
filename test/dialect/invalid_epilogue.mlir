// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// legal: tc.epilogue/shape
func.func @f(%sums: tensor<8x16xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.epilogue/shape
func.func @f(%sums: tensor<8x16xf32>) {
  // expected-error @+1 {{tc.epilogue: sums and out must be static and of one shape, or sums have twice the columns, got tensor<8x16xf32> and tensor<16x8xf32>: an epilogue works on each element alone, or on a pair of columns}}
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<16x8xf32>
  return
}

// -----

// legal: tc.epilogue/body
func.func @f(%sums: tensor<8x16xi32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: i32):
    %v = arith.sitofp %s : i32 to f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xi32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.epilogue/body
func.func @f(%sums: tensor<8x16xf32>) {
  // expected-error @+1 {{tc.epilogue: the body must be one block of an argument of f32 that ends in tc.yield of f16, got 1 blocks of arguments (f32), yielding f32}}
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf16>
  return
}

// -----

// legal: tc.epilogue/body
func.func @f(%sums: tensor<8x32xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%gate: f32, %value: f32):
    %v = arith.mulf %gate, %value : f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x32xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.epilogue/body
func.func @f(%sums: tensor<8x32xf32>) {
  // expected-error @+1 {{tc.epilogue: the body must be one block of two arguments of f32 that ends in tc.yield of f32, got 1 blocks of arguments (f32), yielding f32}}
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) : (tensor<8x32xf32>) -> tensor<8x16xf32>
  return
}

// -----

// legal: tc.epilogue/scalar-ops
func.func @f(%sums: tensor<8x16xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    %v = math.tanh %s : f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.epilogue/scalar-ops
func.func @f(%sums: tensor<8x16xf32>) {
  // expected-error @+1 {{tc.epilogue: the body must be made of tc.element, and of arith and math ops on numbers, got arith.remf: every thread computes them on the elements it holds}}
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    %v = arith.remf %s, %s : f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// legal: tc.element/parent
func.func @f(%sums: tensor<8x16xf32>, %x: tensor<f32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    %v = "tc.element"(%x) {map = affine_map<(m, n) -> ()>} : (tensor<f32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.element/parent
func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{tc.element: expected an op in the body of tc.epilogue, got one in func.func: its map counts the dimensions of that result}}
  %v = "tc.element"(%x) {map = affine_map<() -> ()>} : (tensor<f32>) -> f32
  return
}

// -----

// legal: tc.element/map
func.func @f(%sums: tensor<8x16xf32>, %x: tensor<16x1xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    %v = "tc.element"(%x) {map = affine_map<(m, n) -> (n, 0)>} : (tensor<16x1xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.element/map
func.func @f(%sums: tensor<8x16xf32>, %x: tensor<8xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: map must go from the 2 dimensions of the result to distinct ones of them, or 0, got (d0, d1) -> (d0 + d1)}}
    %v = "tc.element"(%x) {map = affine_map<(m, n) -> (m + n)>} : (tensor<8xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// legal: tc.element/tensor
func.func @f(%sums: tensor<8x16xf32>, %x: tensor<16x8xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    %v = "tc.element"(%x) {map = affine_map<(m, n) -> (n, m)>} : (tensor<16x8xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.element/tensor
func.func @f(%sums: tensor<8x16xf32>, %x: tensor<16xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: tensor must have the shape [8] by its map, and the value its element, got tensor<16xf32> -> f32}}
    %v = "tc.element"(%x) {map = affine_map<(m, n) -> (m)>} : (tensor<16xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// legal: tc.element/of-group
// legal: tc.element/tensor
func.func @f(%a: tensor<8x4xf16>, %b: tensor<3x4x16xf16>, %sizes: tensor<3xi32>, %x: tensor<3x16xf32>, %w: tensor<3xf32>) {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"} : (tensor<8x4xf16>, tensor<3x4x16xf16>, tensor<3xi32>) -> tensor<8x16xf32>
  %y = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    %v = "tc.element"(%x) {map = affine_map<(t, n) -> (n)>, of_group} : (tensor<3x16xf32>) -> f32
    %u = "tc.element"(%w) {map = affine_map<(t, n) -> ()>, of_group} : (tensor<3xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.element/tensor
func.func @f(%a: tensor<8x4xf16>, %b: tensor<3x4x16xf16>, %sizes: tensor<3xi32>, %x: tensor<2x16xf32>) {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"} : (tensor<8x4xf16>, tensor<3x4x16xf16>, tensor<3xi32>) -> tensor<8x16xf32>
  %y = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: tensor must have the shape [3, 16] by its map, and the value its element, got tensor<2x16xf32> -> f32}}
    %v = "tc.element"(%x) {map = affine_map<(t, n) -> (n)>, of_group} : (tensor<2x16xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.element/of-group
func.func @f(%sums: tensor<8x16xf32>, %x: tensor<3x16xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: of_group needs sums of a tc.grouped_matmul of contiguous rows, and a map without their dimension, got other sums: of masked groups a map takes the first dimension, (g, c, n) -> (g, n)}}
    %v = "tc.element"(%x) {map = affine_map<(t, n) -> (n)>, of_group} : (tensor<3x16xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.element/of-group
func.func @f(%a: tensor<3x8x4xf16>, %b: tensor<3x4x16xf16>, %sizes: tensor<3xi32>, %x: tensor<3x16xf32>) {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"} : (tensor<3x8x4xf16>, tensor<3x4x16xf16>, tensor<3xi32>) -> tensor<3x8x16xf32>
  %y = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: of_group needs sums of a tc.grouped_matmul of contiguous rows, and a map without their dimension, got masked groups: of masked groups a map takes the first dimension, (g, c, n) -> (g, n)}}
    %v = "tc.element"(%x) {map = affine_map<(g, c, n) -> (n)>, of_group} : (tensor<3x16xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<3x8x16xf32>) -> tensor<3x8x16xf32>
  return
}

// -----

// illegal: tc.element/of-group
func.func @f(%a: tensor<8x4xf16>, %b: tensor<3x4x16xf16>, %sizes: tensor<3xi32>, %x: tensor<3x8xf32>) {
  %c = "tc.grouped_matmul"(%a, %b, %sizes) {a_layout = "mk", b_layout = "kn"} : (tensor<8x4xf16>, tensor<3x4x16xf16>, tensor<3xi32>) -> tensor<8x16xf32>
  %y = "tc.epilogue"(%c) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: of_group needs sums of a tc.grouped_matmul of contiguous rows, and a map without their dimension, got affine_map<(d0, d1) -> (d0)>: of masked groups a map takes the first dimension, (g, c, n) -> (g, n)}}
    %v = "tc.element"(%x) {map = affine_map<(t, n) -> (t)>, of_group} : (tensor<3x8xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// legal: tc.yield/parent
func.func @f(%sums: tensor<8x16xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// illegal: tc.yield/parent
func.func @f(%x: f32) {
  // expected-error @+1 {{tc.yield: expected the last op in the body of tc.epilogue, got one in func.func}}
  "tc.yield"(%x) : (f32) -> ()
  return
}
