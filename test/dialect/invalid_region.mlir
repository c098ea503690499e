// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Rules of ops with regions, and of ops inside them.

func.func @legal(%done: !tc.mbarrier) {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

func.func @at_the_op_around(%done: !tc.mbarrier) {
  // expected-error @+1 {{tc.role: the body must be one block with one index argument (the position in warps), got 1 blocks with arguments (i32)}}
  "tc.role"() ({
  ^bb0(%w: i32):
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

func.func @at_the_op_inside(%sums: tensor<8x16xf32>, %x: tensor<3x16xf32>) {
  %y = "tc.epilogue"(%sums) ({
  ^bb0(%s: f32):
    // expected-error @+1 {{tc.element: tensor must have the shape [8, 16] by its map, and the value its element, got tensor<3x16xf32> -> f32}}
    %v = "tc.element"(%x) {map = affine_map<(m, n) -> (m, n)>} : (tensor<3x16xf32>) -> f32
    "tc.yield"(%v) : (f32) -> ()
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}
