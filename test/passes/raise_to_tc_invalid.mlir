// Match failures of raise-to-tc, each at its op.
// RUN: %tc-opt %s --split-input-file --raise-to-tc --verify-diagnostics
// RUN: %exits 3 %tc-opt %s --split-input-file --raise-to-tc | %filecheck %s

// CHECK: raise_to_tc_invalid.mlir:13:8: error: expected padding with 0.0, got 1.000000e+00 : f16 (TMA
// CHECK: smallest accepted example: func.func @f(%x: tensor<1x1x1x8xf16>

func.func @padded_with_one(%x: tensor<1x4x4x8xf16>, %w: tensor<3x3x8x8xf16>, %init: tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32> {
  %one = arith.constant 1.0 : f16
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%init : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  // expected-error @+1 {{expected padding with 0.0}}
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %one : f16
  } : tensor<1x4x4x8xf16> to tensor<1x6x6x8xf16>
  %y = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<1x6x6x8xf16>, tensor<3x3x8x8xf16>) outs(%f : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  return %y : tensor<1x4x4x8xf32>
}

// -----

func.func @padded_channels(%x: tensor<1x4x4x8xf16>, %w: tensor<3x3x16x8xf16>) -> tensor<1x2x2x8xf32> {
  %z = arith.constant 0.0 : f16
  %acc = arith.constant dense<0.0> : tensor<1x2x2x8xf32>
  %p = tensor.pad %x low[0, 0, 0, 0] high[0, 0, 0, 8] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %z : f16
  } : tensor<1x4x4x8xf16> to tensor<1x4x4x16xf16>
  // expected-error @+1 {{expected padding of height and width of the input only}}
  %y = linalg.conv_2d_nhwc_hwcf ins(%p, %w : tensor<1x4x4x16xf16>, tensor<3x3x16x8xf16>) outs(%acc : tensor<1x2x2x8xf32>) -> tensor<1x2x2x8xf32>
  return %y : tensor<1x2x2x8xf32>
}

// -----

func.func @dynamic(%a: tensor<?x8xf16>, %b: tensor<8x8xf16>, %init: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-error @+1 {{expected static shapes, got tensor<?x8xf16>}}
  %c = linalg.matmul ins(%a, %b : tensor<?x8xf16>, tensor<8x8xf16>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
  return %c : tensor<?x8xf32>
}

// -----

func.func @channels_first(%x: tensor<1x8x4x4xf16>, %w: tensor<8x8x3x3xf16>) -> tensor<1x8x2x2xf32> {
  %acc = arith.constant dense<0.0> : tensor<1x8x2x2xf32>
  // expected-error @+1 {{expected the result channels last, (n, p, q, k)}}
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x4x4xf16>, tensor<8x8x3x3xf16>) outs(%acc : tensor<1x8x2x2xf32>) -> tensor<1x8x2x2xf32>
  return %y : tensor<1x8x2x2xf32>
}

// -----

func.func @produced_input(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>) -> tensor<8x8xf32> {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  %n = arith.negf %a : tensor<8x8xf16>
  // expected-error @+1 {{expected function arguments as inputs (TMA reads them from global memory), got the result of arith.negf}}
  %c = linalg.matmul ins(%n, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}

// -----

func.func @used_twice(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  // expected-error @+1 {{expected the result of the contraction to be read once, got 2}}
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c, %c : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

func.func @rounded_up(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  // expected-error @+1 {{expected rounding to f16 or bf16, to nearest even, got f16 upward}}
  %r = arith.truncf %c upward : tensor<8x8xf32> to tensor<8x8xf16>
  return %r : tensor<8x8xf16>
}

// -----

// expected-error @+1 {{expected exactly one contraction in a function, got 0}}
func.func @nothing(%a: tensor<8x8xf16>) -> tensor<8x8xf16> {
  return %a : tensor<8x8xf16>
}

// -----

func.func @quantised(%x: tensor<1x4x4x16xi8>, %w: tensor<1x1x16x16xi8>, %zx: i32, %zw: i32) -> tensor<1x4x4x16xi32> {
  %acc = arith.constant dense<0> : tensor<1x4x4x16xi32>
  // expected-error @+1 {{expected a contraction that tensor cores can compute, got linalg.conv_2d_nhwc_hwcf_q: the named op for quantised convolutions subtracts zero points, which the tensor core does not; subtract them in an op before}}
  %y = linalg.conv_2d_nhwc_hwcf_q {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>} ins(%x, %w, %zx, %zw : tensor<1x4x4x16xi8>, tensor<1x1x16x16xi8>, i32, i32) outs(%acc : tensor<1x4x4x16xi32>) -> tensor<1x4x4x16xi32>
  return %y : tensor<1x4x4x16xi32>
}
