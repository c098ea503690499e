// Padding, zero fill and rounding are folded in; the unread outs argument goes.
// RUN: %tc-opt %s --split-input-file --raise-to-tc | %filecheck %s
// RUN: %tc-opt %s --split-input-file --raise-to-tc --mlir-print-debuginfo | %filecheck %s --check-prefix=LOC

// CHECK-LABEL: func.func @padded(
// CHECK-SAME: %arg0: tensor<2x5x6x8xf16>, %arg1: tensor<3x3x8x16xf16>) -> tensor<2x6x7x16xf16>
// CHECK-NEXT: %0 = "tc.conv2d"(%arg0, %arg1) {dilations = array<i64: 1, 1>, filter = "hwcf", pads = array<i64: 1, 2, 0, 3>, strides = array<i64: 1, 1>} : (tensor<2x5x6x8xf16>, tensor<3x3x8x16xf16>) -> tensor<2x6x7x16xf16>
// CHECK-NEXT: return %0
// LOC: "tc.conv2d"{{.*}} loc(#loc[[AT:[0-9]+]])
// LOC: #loc[[AT]] = loc({{.*}}:19:8)
func.func @padded(%x: tensor<2x5x6x8xf16>, %w: tensor<3x3x8x16xf16>, %init: tensor<2x6x7x16xf32>) -> tensor<2x6x7x16xf16> {
  %zero = arith.constant 0.0 : f16
  %acc = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 0, 0] high[0, 2, 3, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<2x5x6x8xf16> to tensor<2x8x9x8xf16>
  %f = linalg.fill ins(%acc : f32) outs(%init : tensor<2x6x7x16xf32>) -> tensor<2x6x7x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<2x8x9x8xf16>, tensor<3x3x8x16xf16>) outs(%f : tensor<2x6x7x16xf32>) -> tensor<2x6x7x16xf32>
  %e = tensor.empty() : tensor<2x6x7x16xf16>
  %z = linalg.generic {indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%y : tensor<2x6x7x16xf32>) outs(%e : tensor<2x6x7x16xf16>) {
  ^bb0(%in: f32, %o: f16):
    %t = arith.truncf %in : f32 to f16
    linalg.yield %t : f16
  } -> tensor<2x6x7x16xf16>
  return %z : tensor<2x6x7x16xf16>
}

// -----

// CHECK-LABEL: func.func @transposed(
// CHECK: "tc.matmul"(%arg0, %arg1) {a_layout = "km", b_layout = "nk"} : (tensor<24x40xbf16>, tensor<16x24xbf16>) -> tensor<40x16xf32>
func.func @transposed(%a: tensor<24x40xbf16>, %b: tensor<16x24xbf16>) -> tensor<40x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<40x16xf32>
  %c = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
       ins(%a, %b : tensor<24x40xbf16>, tensor<16x24xbf16>) outs(%zero : tensor<40x16xf32>) -> tensor<40x16xf32>
  return %c : tensor<40x16xf32>
}

// -----

// CHECK-LABEL: func.func @batch(
// CHECK: "tc.matmul"(%arg0, %arg1) {a_layout = "mk", b_layout = "kn"} : (tensor<3x40x24xf16>, tensor<3x24x16xf16>) -> tensor<3x40x16xbf16>
func.func @batch(%a: tensor<3x40x24xf16>, %b: tensor<3x24x16xf16>) -> tensor<3x40x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<3x40x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3x40x16xf32>) -> tensor<3x40x16xf32>
  %c = linalg.batch_matmul ins(%a, %b : tensor<3x40x24xf16>, tensor<3x24x16xf16>) outs(%f : tensor<3x40x16xf32>) -> tensor<3x40x16xf32>
  %r = arith.truncf %c to_nearest_even : tensor<3x40x16xf32> to tensor<3x40x16xbf16>
  return %r : tensor<3x40x16xbf16>
}

// -----

// Weights as torch.nn.Linear has them: a transpose of an operand is its layout.
// CHECK-LABEL: func.func @transposed(
// CHECK-NEXT: %0 = "tc.matmul"(%arg0, %arg1) {a_layout = "mk", b_layout = "nk"} : (tensor<8x16xf16>, tensor<24x16xf16>) -> tensor<8x24xf32>
// CHECK-NEXT: return %0
func.func @transposed(%x: tensor<8x16xf16>, %w: tensor<24x16xf16>) -> tensor<8x24xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x24xf32>
  %e = tensor.empty() : tensor<16x24xf16>
  %t = linalg.transpose ins(%w : tensor<24x16xf16>) outs(%e : tensor<16x24xf16>) permutation = [1, 0]
  %c = linalg.matmul ins(%x, %t : tensor<8x16xf16>, tensor<16x24xf16>) outs(%acc : tensor<8x24xf32>) -> tensor<8x24xf32>
  return %c : tensor<8x24xf32>
}
