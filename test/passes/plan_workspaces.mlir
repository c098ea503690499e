// RUN: %tc-opt %s --plan-workspaces | %filecheck %s

// Buffer 2 is the result, 3 to 5 are workspaces. 3 is read for the last time by @f_1, so that 5, which
// @f_2 writes, begins where it did; 4 is in use beside each of them.
// CHECK: module attributes {tc.workspace_offsets = array<i64: 2048, 0, 2048>, tc.workspaces = array<i64: 1024, 2000, 512>}
// CHECK: func.func @f_0(%{{.*}}) -> tensor<256xf32> attributes {tc.args = array<i64: 0, 3>, tc.order = 0 : i64}
module attributes {tc.workspaces = array<i64: 1024, 2000, 512>} {
  func.func @f_0(%x: tensor<256xf32>) -> tensor<256xf32> attributes {tc.args = array<i64: 0, 3>, tc.order = 0 : i64} {
    %y = arith.negf %x : tensor<256xf32>
    return %y : tensor<256xf32>
  }
  func.func @f_1(%x: tensor<256xf32>) -> tensor<500xf32> attributes {tc.args = array<i64: 3, 4>, tc.order = 1 : i64} {
    %0 = arith.constant 0.0 : f32
    %y = tensor.pad %x low[0] high[244] {
    ^bb0(%i: index):
      tensor.yield %0 : f32
    } : tensor<256xf32> to tensor<500xf32>
    return %y : tensor<500xf32>
  }
  func.func @f_2(%x: tensor<500xf32>) -> tensor<128xf32> attributes {tc.args = array<i64: 4, 5>, tc.order = 2 : i64} {
    %y = tensor.extract_slice %x[0] [128] [1] : tensor<500xf32> to tensor<128xf32>
    return %y : tensor<128xf32>
  }
  func.func @f_3(%x: tensor<128xf32>, %r: tensor<128xf32>) -> tensor<128xf32> attributes {tc.args = array<i64: 5, 1, 2>, tc.order = 3 : i64} {
    %y = arith.addf %x, %r : tensor<128xf32>
    return %y : tensor<128xf32>
  }
}
