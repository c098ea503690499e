// What is left of empty tensors is refused at its op.
// RUN: %tc-opt %s --split-input-file --fold-empty --verify-diagnostics
// RUN: %exits 3 %tc-opt %s --split-input-file --fold-empty | %filecheck %s

// CHECK: fold_empty_invalid.mlir:9:8: error: expected a linalg op, tc.conv2d, tc.matmul, tensor.pad, tensor.concat or tensor.insert_slice to make a result from a tensor without elements, got tc.grouped_matmul; write it with these, or leave it out
// CHECK: smallest accepted example: func.func @f(
func.func @groups(%a: tensor<8x0xf16>, %b: tensor<2x16x0xf16>, %rows: tensor<2xi32>) -> tensor<8x16xf32> {
  // expected-error @+1 {{got tc.grouped_matmul; write it with these}}
  %y = "tc.grouped_matmul"(%a, %b, %rows) {a_layout = "mk", b_layout = "nk"} : (tensor<8x0xf16>, tensor<2x16x0xf16>, tensor<2xi32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

func.func @padded_by_index(%x: tensor<0xindex>) -> tensor<4xindex> {
  // expected-error @+1 {{expected tensor.pad with one number around a tensor without elements, got one that its region computes; yield a constant}}
  %p = tensor.pad %x low[2] high[2] {
  ^bb0(%i: index):
    tensor.yield %i : index
  } : tensor<0xindex> to tensor<4xindex>
  return %p : tensor<4xindex>
}
