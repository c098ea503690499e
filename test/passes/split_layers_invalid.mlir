// Numbers between the ops on tensors of a function, and regions inside a body.
// RUN: %tc-opt %s --split-input-file --verify-diagnostics --split-layers

// expected-error @+1 {{expected tensors as arguments and results, got argument 1 of type f32 (a kernel's arguments are buffers in memory); write it as tensor<f32>}}
func.func @argument(%x: tensor<8xf32>, %s: f32) -> tensor<8xf32> {
  %e = tensor.splat %s : tensor<8xf32>
  %y = arith.mulf %x, %e : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// expected-error @+1 {{got result 0 of type i32}}
func.func @result(%x: tensor<8xi32>) -> i32 {
  %c = arith.constant 0 : index
  %y = tensor.extract %x[%c] : tensor<8xi32>
  return %y : i32
}

// -----

func.func @computed(%x: tensor<8xf32>, %s: tensor<f32>) -> tensor<8xf32> {
  // expected-error @+1 {{expected ops on tensors, got tensor.extract with a result of type f32 (a launch computes tensors only); compute it in the body of the linalg.generic that reads it}}
  %n = tensor.extract %s[] : tensor<f32>
  %e = tensor.splat %n : tensor<8xf32>
  %y = arith.mulf %x, %e : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Its twin: a tensor without dimensions.
#n = affine_map<(d) -> (d)>
func.func @tensor(%x: tensor<8xf32>, %s: tensor<f32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  // expected-remark @+1 {{launch 1 of 1, @tensor_0_mulf}}
  %y = linalg.generic {indexing_maps = [#n, affine_map<(d) -> ()>, #n], iterator_types = ["parallel"]}
      ins(%x, %s : tensor<8xf32>, tensor<f32>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}
