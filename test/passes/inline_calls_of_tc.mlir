// Bodies with ops of tc, which upstream does not inline, two levels deep and called twice.
// RUN: %tc-opt %s --fold-layouts | %filecheck %s

// CHECK-NOT: @inner
// CHECK-NOT: @layer
// CHECK-LABEL: func.func @twice(
// CHECK-SAME: %[[A:.*]]: tensor<300x128xf16>, %[[B:.*]]: tensor<200x128xf16>, %[[C:.*]]: tensor<200x128xf16>
// CHECK: %[[Y:.*]] = "tc.matmul"(%[[A]], %[[B]])
// CHECK: %[[U:.*]] = "tc.epilogue"(%[[Y]])
// CHECK: %[[Z:.*]] = "tc.matmul"(%[[A]], %[[C]])
// CHECK: %[[V:.*]] = "tc.epilogue"(%[[Z]])
// CHECK-NOT: func.call
// CHECK: return %[[U]], %[[V]]
func.func private @inner(%a: tensor<300x128xf16>, %b: tensor<200x128xf16>)
    -> (tensor<300x200xf32>, tensor<300x128xf16>) {
  %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "nk"} : (tensor<300x128xf16>, tensor<200x128xf16>) -> tensor<300x200xf32>
  return %c, %a : tensor<300x200xf32>, tensor<300x128xf16>
}
func.func private @layer(%a: tensor<300x128xf16>, %b: tensor<200x128xf16>) -> tensor<300x200xf32> {
  %c:2 = func.call @inner(%a, %b) : (tensor<300x128xf16>, tensor<200x128xf16>) -> (tensor<300x200xf32>, tensor<300x128xf16>)
  %one = arith.constant 1.0 : f32
  %d = "tc.epilogue"(%c#0) ({
  ^bb0(%x: f32):
    %y = arith.addf %x, %one : f32
    "tc.yield"(%y) : (f32) -> ()
  }) : (tensor<300x200xf32>) -> tensor<300x200xf32>
  return %d : tensor<300x200xf32>
}
func.func @twice(%a: tensor<300x128xf16>, %b: tensor<200x128xf16>, %c: tensor<200x128xf16>) -> (tensor<300x200xf32>, tensor<300x200xf32>) {
  %y = func.call @layer(%a, %b) : (tensor<300x128xf16>, tensor<200x128xf16>) -> tensor<300x200xf32>
  %z = func.call @layer(%a, %c) : (tensor<300x128xf16>, tensor<200x128xf16>) -> tensor<300x200xf32>
  return %y, %z : tensor<300x200xf32>, tensor<300x200xf32>
}
