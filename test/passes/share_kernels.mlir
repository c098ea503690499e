// share-kernels: launches that are the same but for name, place and buffers are launches of one kernel.
// RUN: %tc-opt %s --split-input-file --share-kernels | %filecheck %s
// RUN: %tc-opt %s --split-input-file --share-kernels 2>&1 | %filecheck %s --check-prefix=REMARK

// REMARK: remark: @f_1 is another launch of it
// CHECK: module attributes {tc.repeats = [{args = array<i64: 4, 2, 3>, kernel = 0 : i64, name = "f_1", of = array<i64: 0, 1, 4>, order = 1 : i64}], tc.workspaces = array<i64: 1024>}
// CHECK: func.func @f_0(
// CHECK-NOT: func.func
module attributes {tc.workspaces = array<i64: 1024>} {
  func.func @f_0(%x: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<16x16xf32> attributes {tc.args = array<i64: 0, 1, 4>, tc.order = 0 : i64, tc.simt} {
    %y = linalg.broadcast ins(%b : tensor<16xf32>) outs(%x : tensor<16x16xf32>) dimensions = [0]
    return %y : tensor<16x16xf32>
  }
  func.func @f_1(%h: tensor<16x16xf32>, %c: tensor<16xf32>) -> tensor<16x16xf32> attributes {tc.args = array<i64: 4, 2, 3>, tc.order = 1 : i64, tc.simt} {
    %z = linalg.broadcast ins(%c : tensor<16xf32>) outs(%h : tensor<16x16xf32>) dimensions = [0]
    return %z : tensor<16x16xf32>
  }
}

// -----

// Another dimension, and the same buffer twice where the other launch reads two: three kernels.
// CHECK: module {
// CHECK-COUNT-3: func.func @g_
module {
  func.func @g_0(%x: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<16x16xf32> attributes {tc.args = array<i64: 0, 1, 5>, tc.order = 0 : i64} {
    %y = linalg.broadcast ins(%b : tensor<16xf32>) outs(%x : tensor<16x16xf32>) dimensions = [0]
    return %y : tensor<16x16xf32>
  }
  func.func @g_1(%x: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<16x16xf32> attributes {tc.args = array<i64: 0, 1, 6>, tc.order = 1 : i64} {
    %y = linalg.broadcast ins(%b : tensor<16xf32>) outs(%x : tensor<16x16xf32>) dimensions = [1]
    return %y : tensor<16x16xf32>
  }
  func.func @g_2(%x: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<16x16xf32> attributes {tc.args = array<i64: 0, 0, 7>, tc.order = 2 : i64} {
    %y = linalg.broadcast ins(%b : tensor<16xf32>) outs(%x : tensor<16x16xf32>) dimensions = [0]
    return %y : tensor<16x16xf32>
  }
}

// -----

// The only launch stays as it is.
// CHECK: func.func @alone(
// CHECK-NOT: tc.order
func.func @alone(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  return %x : tensor<16x16xf32>
}
