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

// -----

// legal: tc.fragment_epilogue/tails
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "outer inner", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// illegal: tc.fragment_epilogue/tails
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  // expected-error @+1 {{tc.fragment_epilogue: tails must be one of "", "outer", "inner", "outer inner", got "both"}}
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "both", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// legal: tc.fragment_epilogue/rank
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  %d = "tc.fragment_epilogue"(%c, %i, %i, %i) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 3>} : (!c, index, index, index) -> !c
  return
}

// -----

// illegal: tc.fragment_epilogue/rank
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  // expected-error @+1 {{tc.fragment_epilogue: expected the row and the column of the tile's first element, or a batch before them, got 1 indices}}
  %d = "tc.fragment_epilogue"(%c, %i) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 1>} : (!c, index) -> !c
  return
}

// -----

// legal: tc.fragment_epilogue/fragments
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
!h = !tc.fragment<array<i64: 32, 16>, f16, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    %h = arith.truncf %s : f32 to f16
    "tc.yield"(%h) : (f16) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !h
  return
}

// -----

// illegal: tc.fragment_epilogue/fragments
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 16, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  // expected-error @+1 {{tc.fragment_epilogue: expected fragments of C of one shape and atom, got !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16"> and !tc.fragment<array<i64: 16, 32>, f32, "C", "mma.m16n8k16.f16">: a thread has the same elements of both}}
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !d
  return
}

// -----

// legal: tc.fragment_epilogue/body
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// illegal: tc.fragment_epilogue/body
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
!h = !tc.fragment<array<i64: 32, 16>, f16, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  // expected-error @+1 {{tc.fragment_epilogue: the body must be one block of an argument of f32 that ends in tc.yield of f16, got 1 blocks of arguments (f32), yielding f32}}
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !h
  return
}

// -----

// legal: tc.fragment_epilogue/scalar-ops
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    %e = math.exp %s : f32
    "tc.yield"(%e) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// illegal: tc.fragment_epilogue/scalar-ops
!c = !tc.fragment<array<i64: 32, 16>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%c: !c, %i: index) {
  // expected-error @+1 {{tc.fragment_epilogue: the body must be made of tc.element, and of arith and math ops on numbers, got arith.divsi: every thread computes them on the elements it holds}}
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: i32):
    %e = arith.divsi %s, %s : i32
    "tc.yield"(%e) : (i32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// legal: tc.element/memref
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index, %x: memref<1x50xf32>) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    %b = "tc.element"(%x) {map = affine_map<(m, n) -> (0, n)>} : (memref<1x50xf32>) -> f32
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// illegal: tc.element/memref
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index, %x: memref<2x50xf32>) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: tensor beside a fragment must be a static, contiguous memref with a dimension for each result of the map, of extent 1 where that is 0, or a fragment in the same registers, and the value its element, got memref<2x50xf32> -> f32}}
    %b = "tc.element"(%x) {map = affine_map<(m, n) -> (0, n)>} : (memref<2x50xf32>) -> f32
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// illegal: tc.element/memref
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index, %x: memref<50xf16>) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: tensor beside a fragment must be a static, contiguous memref with a dimension for each result of the map, of extent 1 where that is 0, or a fragment in the same registers, and the value its element, got memref<50xf16> -> f32}}
    %b = "tc.element"(%x) {map = affine_map<(m, n) -> (n)>} : (memref<50xf16>) -> f32
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// illegal: tc.element/memref
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %i: index, %x: tensor<50xf32>) {
  %d = "tc.fragment_epilogue"(%c, %i, %i) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: tensor beside a fragment must be a static, contiguous memref with a dimension for each result of the map, of extent 1 where that is 0, or a fragment in the same registers, and the value its element, got tensor<50xf32> -> f32}}
    %b = "tc.element"(%x) {map = affine_map<(m, n) -> (n)>} : (tensor<50xf32>) -> f32
    "tc.yield"(%s) : (f32) -> ()
  }) {tails = "", operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}
