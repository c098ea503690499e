// join-siblings: products of one tensor with frozen matrices are one product.
// RUN: %tc-opt %s --split-input-file --join-siblings 2>/dev/null | %filecheck %s
// RUN: %tc-opt %s --split-input-file --join-siblings 2>&1 | %filecheck %s --check-prefix=REMARK

// Of different widths, with biases; the rounding after them is joined, what reads other indices not.
// CHECK-LABEL: func.func @heads(
// CHECK: %[[W:.*]] = tensor.concat dim(0) %arg1, %arg2 : (tensor<32x64xf16>, tensor<16x64xf16>) -> tensor<48x64xf16>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[W]] : tensor<48x64xf16>)
// CHECK: linalg.matmul ins(%arg0, %[[T]] : tensor<40x64xf16>, tensor<64x48xf16>)
// CHECK: tensor.concat dim(0) %arg3, %arg4 : (tensor<32xf32>, tensor<16xf32>) -> tensor<48xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<40x48xf16>)
// CHECK: tensor.extract_slice %[[Y]][0, 0] [40, 32] [1, 1] : tensor<40x48xf16> to tensor<40x32xf16>
// CHECK: tensor.extract_slice %[[Y]][0, 32] [40, 16] [1, 1] : tensor<40x48xf16> to tensor<40x16xf16>
// CHECK-NOT: linalg.matmul
// REMARK: remark: joined 2 products of one tensor: tensor<40x48xf16>
#row = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
#head = affine_map<(m, h, n) -> (m, h, n)>
func.func @heads(%x: tensor<40x64xf16>, %wq: tensor<32x64xf16>, %wk: tensor<16x64xf16>, %bq: tensor<32xf32>, %bk: tensor<16xf32>)
    -> (tensor<40x4x8xf16>, tensor<40x2x8xf16>) attributes {tc.frozen = array<i64: 1, 2, 3, 4>} {
  %zero = arith.constant 0.0 : f32
  %tq = tensor.empty() : tensor<64x32xf16>
  %q1 = linalg.transpose ins(%wq : tensor<32x64xf16>) outs(%tq : tensor<64x32xf16>) permutation = [1, 0]
  %eq = tensor.empty() : tensor<40x32xf32>
  %iq = linalg.fill ins(%zero : f32) outs(%eq : tensor<40x32xf32>) -> tensor<40x32xf32>
  %q = linalg.matmul ins(%x, %q1 : tensor<40x64xf16>, tensor<64x32xf16>) outs(%iq : tensor<40x32xf32>) -> tensor<40x32xf32>
  %oq = tensor.empty() : tensor<40x32xf16>
  %q2 = linalg.generic {indexing_maps = [#row, #column, #row], iterator_types = ["parallel", "parallel"]}
      ins(%q, %bq : tensor<40x32xf32>, tensor<32xf32>) outs(%oq : tensor<40x32xf16>) {
  ^bb0(%a: f32, %b: f32, %o: f16):
    %s = arith.addf %a, %b : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<40x32xf16>
  %q3 = tensor.expand_shape %q2 [[0], [1, 2]] output_shape [40, 4, 8] : tensor<40x32xf16> into tensor<40x4x8xf16>
  %q4 = math.exp %q3 : tensor<40x4x8xf16>
  %tk = tensor.empty() : tensor<64x16xf16>
  %k1 = linalg.transpose ins(%wk : tensor<16x64xf16>) outs(%tk : tensor<64x16xf16>) permutation = [1, 0]
  %ek = tensor.empty() : tensor<40x16xf32>
  %ik = linalg.fill ins(%zero : f32) outs(%ek : tensor<40x16xf32>) -> tensor<40x16xf32>
  %k = linalg.matmul ins(%x, %k1 : tensor<40x64xf16>, tensor<64x16xf16>) outs(%ik : tensor<40x16xf32>) -> tensor<40x16xf32>
  %ok = tensor.empty() : tensor<40x16xf16>
  %k2 = linalg.generic {indexing_maps = [#row, #column, #row], iterator_types = ["parallel", "parallel"]}
      ins(%k, %bk : tensor<40x16xf32>, tensor<16xf32>) outs(%ok : tensor<40x16xf16>) {
  ^bb0(%a: f32, %b: f32, %o: f16):
    %s = arith.addf %a, %b : f32
    %t = arith.truncf %s : f32 to f16
    linalg.yield %t : f16
  } -> tensor<40x16xf16>
  %k3 = tensor.expand_shape %k2 [[0], [1, 2]] output_shape [40, 2, 8] : tensor<40x16xf16> into tensor<40x2x8xf16>
  %k4 = math.exp %k3 : tensor<40x2x8xf16>
  return %q4, %k4 : tensor<40x4x8xf16>, tensor<40x2x8xf16>
}

// -----

// Weights that are not frozen.
// CHECK-LABEL: func.func @changing(
// CHECK-COUNT-2: linalg.matmul
func.func @changing(%x: tensor<40x64xf16>, %wq: tensor<64x32xf16>, %wk: tensor<64x32xf16>) -> (tensor<40x4x8xf32>, tensor<40x4x8xf32>)
    attributes {tc.frozen = array<i64: 1>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<40x32xf32>) -> tensor<40x32xf32>
  %q = linalg.matmul ins(%x, %wq : tensor<40x64xf16>, tensor<64x32xf16>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %k = linalg.matmul ins(%x, %wk : tensor<40x64xf16>, tensor<64x32xf16>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %q3 = tensor.expand_shape %q [[0], [1, 2]] output_shape [40, 4, 8] : tensor<40x32xf32> into tensor<40x4x8xf32>
  %k3 = tensor.expand_shape %k [[0], [1, 2]] output_shape [40, 4, 8] : tensor<40x32xf32> into tensor<40x4x8xf32>
  %q4 = math.exp %q3 : tensor<40x4x8xf32>
  %k4 = math.exp %k3 : tensor<40x4x8xf32>
  return %q4, %k4 : tensor<40x4x8xf32>, tensor<40x4x8xf32>
}

// -----

// The epilogues compute different things.
// CHECK-LABEL: func.func @branches(
// CHECK-COUNT-2: linalg.matmul
// REMARK: remark: 2 products of one tensor stay separate: the product's own epilogue computes the math.exp after it
func.func @branches(%x: tensor<40x64xf16>, %wq: tensor<64x32xf16>, %wk: tensor<64x32xf16>) -> (tensor<40x32xf32>, tensor<40x32xf32>)
    attributes {tc.frozen = array<i64: 1, 2>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<40x32xf32>) -> tensor<40x32xf32>
  %q = linalg.matmul ins(%x, %wq : tensor<40x64xf16>, tensor<64x32xf16>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %k = linalg.matmul ins(%x, %wk : tensor<40x64xf16>, tensor<64x32xf16>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %q4 = math.exp %q : tensor<40x32xf32>
  %k4 = math.tanh %k : tensor<40x32xf32>
  return %q4, %k4 : tensor<40x32xf32>, tensor<40x32xf32>
}

// -----

// One weight is frozen as it is, the other times a number for each row.
// CHECK-LABEL: func.func @different(
// CHECK-COUNT-2: linalg.matmul
// REMARK: remark: 2 products of one tensor stay separate: expected frozen weights, or the same op for each product
#matrix = affine_map<(k, n) -> (k, n)>
#rows = affine_map<(k, n) -> (k, 0)>
func.func @different(%x: tensor<40x64xf16>, %wq: tensor<64x32xf16>, %wk: tensor<64x32xf16>, %s: tensor<64x1xf16>)
    -> (tensor<40x4x8xf32>, tensor<40x4x8xf32>) attributes {tc.frozen = array<i64: 1, 2, 3>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<40x32xf32>) -> tensor<40x32xf32>
  %o = tensor.empty() : tensor<64x32xf16>
  %q = linalg.matmul ins(%x, %wq : tensor<40x64xf16>, tensor<64x32xf16>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %ws = linalg.generic {indexing_maps = [#matrix, #rows, #matrix], iterator_types = ["parallel", "parallel"]}
      ins(%wk, %s : tensor<64x32xf16>, tensor<64x1xf16>) outs(%o : tensor<64x32xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16):
    %p = arith.mulf %a, %b : f16
    linalg.yield %p : f16
  } -> tensor<64x32xf16>
  %k = linalg.matmul ins(%x, %ws : tensor<40x64xf16>, tensor<64x32xf16>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %q3 = tensor.expand_shape %q [[0], [1, 2]] output_shape [40, 4, 8] : tensor<40x32xf32> into tensor<40x4x8xf32>
  %k3 = tensor.expand_shape %k [[0], [1, 2]] output_shape [40, 4, 8] : tensor<40x32xf32> into tensor<40x4x8xf32>
  %q4 = math.exp %q3 : tensor<40x4x8xf32>
  %k4 = math.exp %k3 : tensor<40x4x8xf32>
  return %q4, %k4 : tensor<40x4x8xf32>, tensor<40x4x8xf32>
}

// -----

// Another product multiplies one of them.
// CHECK-LABEL: func.func @chain(
// CHECK-COUNT-3: linalg.matmul
// REMARK: remark: 2 products of one tensor stay separate: a linalg.matmul reads one, which it would need a copy of
func.func @chain(%x: tensor<40x64xf16>, %wq: tensor<64x32xf16>, %wk: tensor<64x32xf16>) -> (tensor<40x32xf32>, tensor<40x4x8xf32>)
    attributes {tc.frozen = array<i64: 1, 2>} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<40x32xf32>) -> tensor<40x32xf32>
  %q = linalg.matmul ins(%x, %wq : tensor<40x64xf16>, tensor<64x32xf16>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %k = linalg.matmul ins(%x, %wk : tensor<40x64xf16>, tensor<64x32xf16>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %w = tensor.empty() : tensor<32x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%w : tensor<32x32xf32>) -> tensor<32x32xf32>
  %y = linalg.matmul ins(%q, %z : tensor<40x32xf32>, tensor<32x32xf32>) outs(%i : tensor<40x32xf32>) -> tensor<40x32xf32>
  %k3 = tensor.expand_shape %k [[0], [1, 2]] output_shape [40, 4, 8] : tensor<40x32xf32> into tensor<40x4x8xf32>
  %k4 = math.exp %k3 : tensor<40x4x8xf32>
  return %y, %k4 : tensor<40x32xf32>, tensor<40x4x8xf32>
}
