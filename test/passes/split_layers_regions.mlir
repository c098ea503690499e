// What a launch reads, and what is no product.
// RUN: %tc-opt %s --split-input-file --split-layers | %filecheck %s

// What a region inside a body reads is an input of the launch.
// CHECK-LABEL: func.func @nested_0_if(
// CHECK-SAME: %[[A:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<8x4xf32>) -> tensor<8x8xf32>
// CHECK: scf.if
// CHECK: tensor.extract %[[A]]
// CHECK: tensor.extract %[[B]]
#m = affine_map<(i, j) -> (i, j)>
func.func @nested(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  %s = linalg.generic {indexing_maps = [#m], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<8x8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %c4 = arith.constant 4 : index
    %left = arith.cmpi ult, %j, %c4 : index
    %v = scf.if %left -> (f32) {
      %x = tensor.extract %a[%i, %j] : tensor<8x4xf32>
      scf.yield %x : f32
    } else {
      %k = arith.subi %j, %c4 : index
      %y = tensor.extract %b[%i, %k] : tensor<8x4xf32>
      scf.yield %y : f32
    }
    linalg.yield %v : f32
  } -> tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}

// -----

// A sum of products of three inputs is no block-scaled product, and an argmax has two results.
// CHECK-LABEL: func.func @masked_0_addf(
// CHECK: attributes {{.*}}tc.simt
#mk = affine_map<(m, k) -> (m, k)>
#r = affine_map<(m, k) -> (m)>
func.func @masked(%x: tensor<8x48xf32>, %w: tensor<8x48xf32>, %mask: tensor<8x48xf32>) -> tensor<8xf32> {
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#mk, #mk, #mk, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w, %mask : tensor<8x48xf32>, tensor<8x48xf32>, tensor<8x48xf32>) outs(%zero : tensor<8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.mulf %p, %c : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @argmax_0_
// CHECK: attributes {{.*}}tc.simt
#mk = affine_map<(m, k) -> (m, k)>
#r = affine_map<(m, k) -> (m)>
func.func @argmax(%x: tensor<8x48xf32>, %i: tensor<8x48xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %z = arith.constant dense<0> : tensor<8xi32>
  %s:2 = linalg.generic {indexing_maps = [#mk, #mk, #r, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x, %i : tensor<8x48xf32>, tensor<8x48xi32>) outs(%low, %z : tensor<8xf32>, tensor<8xi32>) {
  ^bb0(%a: f32, %b: i32, %o: f32, %p: i32):
    %g = arith.cmpf ogt, %a, %o : f32
    %v = arith.select %g, %a, %o : f32
    %n = arith.select %g, %b, %p : i32
    linalg.yield %v, %n : f32, i32
  } -> (tensor<8xf32>, tensor<8xi32>)
  return %s#0, %s#1 : tensor<8xf32>, tensor<8xi32>
}
