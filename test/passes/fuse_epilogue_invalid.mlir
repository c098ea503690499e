// What an epilogue cannot compute, each at its op, with the reason.
// RUN: %tc-opt %s --split-input-file --fuse-epilogue --verify-diagnostics

func.func @turned(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>, %e: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  // expected-error @+1 {{expected the sums in the order of the result, got them along dimensions 1, 0: a lane holds a row of them}}
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  %t = linalg.transpose ins(%c : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) permutation = [1, 0]
  return %t : tensor<8x8xf32>
}

// -----

func.func @reduced(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>, %bias: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  // expected-error @+1 {{expected ops on single elements between the contraction and the return, got tensor.insert_slice; put it into a function of its own}}
  %s = tensor.insert_slice %bias into %e[0, 0] [8, 8] [1, 1] : tensor<8x8xf32> into tensor<8x8xf32>
  %d = arith.addf %c, %s : tensor<8x8xf32>
  return %d : tensor<8x8xf32>
}

// -----

func.func @weights(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>) -> tensor<8x8xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  // expected-error @+1 {{expected a constant of one number, got one of tensor<8xf32>: weights are read from memory; make it an argument, or run constants-to-arguments first}}
  %w = arith.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%c, %w : tensor<8x8xf32>, tensor<8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%x: f32, %q: f32, %o: f32):
    %0 = arith.addf %x, %q : f32
    linalg.yield %0 : f32
  } -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

func.func @index(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>) -> tensor<8x8xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%x: f32, %o: f32):
    // expected-error @+1 {{expected arith and math ops in an elementwise op, got linalg.index; put it into a function of its own}}
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %0 = arith.addf %x, %f : f32
    linalg.yield %0 : f32
  } -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

func.func @unrelated(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>, %d: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  // expected-error @+1 {{expected the function to return something made of the contraction, got a value that does not depend on it}}
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = arith.negf %d : tensor<8x8xf32>
  return %n : tensor<8x8xf32>
}

// -----

func.func @halves(%a: tensor<8x8xf16>, %b: tensor<8x16xf16>) -> tensor<8x8xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x16xf16>) outs(%acc : tensor<8x16xf32>) -> tensor<8x16xf32>
  // expected-error @+1 {{expected a slice of the even or the odd columns (offset 0 or 1, stride 2), as of gate and value, got offsets [0, 0], sizes [8, 8], strides [1, 1] of [8, 16]; let the columns of the two weights alternate}}
  %gate = tensor.extract_slice %c[0, 0] [8, 8] [1, 1] : tensor<8x16xf32> to tensor<8x8xf32>
  %value = tensor.extract_slice %c[0, 8] [8, 8] [1, 1] : tensor<8x16xf32> to tensor<8x8xf32>
  %p = arith.mulf %gate, %value : tensor<8x8xf32>
  return %p : tensor<8x8xf32>
}

// -----

func.func @biased(%a: tensor<8x8xf16>, %b: tensor<8x16xf16>, %bias: tensor<8x16xf32>) -> tensor<8x8xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x16xf32>
  // expected-error @+1 {{expected another tensor to be read whole, got argument 2 along dimensions 0, 1 (even columns) (a thread reads neighbouring columns); pass its even and odd columns as two tensors}}
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x16xf16>) outs(%acc : tensor<8x16xf32>) -> tensor<8x16xf32>
  %d = arith.addf %c, %bias : tensor<8x16xf32>
  %gate = tensor.extract_slice %d[0, 0] [8, 8] [1, 2] : tensor<8x16xf32> to tensor<8x8xf32>
  return %gate : tensor<8x8xf32>
}

// -----

func.func @started(%a: tensor<8x8xf16>, %b: tensor<8x16xf16>, %start: tensor<8x16xf32>) -> tensor<8x8xf32> {
  // expected-error @+1 {{expected an accumulator that starts from zeros before a gated activation, got another; add it by halves after the slices}}
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x16xf16>) outs(%start : tensor<8x16xf32>) -> tensor<8x16xf32>
  %gate = tensor.extract_slice %c[0, 0] [8, 8] [1, 2] : tensor<8x16xf32> to tensor<8x8xf32>
  return %gate : tensor<8x8xf32>
}

// -----

func.func @channels_first(%x: tensor<1x4x4x8xf16>, %w: tensor<1x1x8x16xf16>, %e: tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32> {
  %acc = arith.constant dense<0.0> : tensor<1x4x4x16xf32>
  // expected-error @+1 {{expected the sums in the order of the result, got them along dimensions 0, 2, 3, 1: a lane holds a row of them}}
  %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x4x4x8xf16>, tensor<1x1x8x16xf16>) outs(%acc : tensor<1x4x4x16xf32>) -> tensor<1x4x4x16xf32>
  %t = linalg.transpose ins(%c : tensor<1x4x4x16xf32>) outs(%e : tensor<1x16x4x4xf32>) permutation = [0, 3, 1, 2]
  return %t : tensor<1x16x4x4xf32>
}
