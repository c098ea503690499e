// What follows a contraction becomes one tc.epilogue; a remark says what was fused.
// RUN: %tc-opt %s --split-input-file --fuse-epilogue | %filecheck %s
// RUN: %tc-opt %s --split-input-file --fuse-epilogue --verify-diagnostics
// RUN: %tc-opt %s --split-input-file --fuse-epilogue --raise-to-tc | %filecheck %s --check-prefix=TC

// A bias by linalg.broadcast, a relu as linalg.map, a rounding: three ops, one body.
// CHECK: #[[N:map[0-9]*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func.func @linear(
// CHECK: %[[C:.*]] = linalg.matmul
// CHECK-NEXT: %[[E:.*]] = "tc.epilogue"(%[[C]]) ({
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32):
// CHECK-NEXT: %[[B:.*]] = "tc.element"(%arg2) {map = #[[N]]} : (tensor<24xf32>) -> f32
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[S]], %[[B]] : f32
// CHECK-NEXT: %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[R:.*]] = arith.maximumf %[[SUM]], %[[Z]] : f32
// CHECK-NEXT: %[[H:.*]] = arith.truncf %[[R]] : f32 to f16
// CHECK-NEXT: "tc.yield"(%[[H]]) : (f16) -> ()
// CHECK-NEXT: }) : (tensor<40x24xf32>) -> tensor<40x24xf16>
// CHECK-NEXT: return %[[E]]
// TC-LABEL: func.func @linear(
// TC-NEXT: %[[C:.*]] = "tc.matmul"(%arg0, %arg1) {{.*}} -> tensor<40x24xf32>
// TC-NEXT: "tc.epilogue"(%[[C]])
func.func @linear(%a: tensor<40x16xf16>, %b: tensor<16x24xf16>, %bias: tensor<24xf32>) -> tensor<40x24xf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<40x24xf32>
  %f = linalg.fill ins(%zero : f32) outs(%empty : tensor<40x24xf32>) -> tensor<40x24xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x24xf16>) outs(%f : tensor<40x24xf32>) -> tensor<40x24xf32>
  %wide = linalg.broadcast ins(%bias : tensor<24xf32>) outs(%empty : tensor<40x24xf32>) dimensions = [0]
  %sum = linalg.add ins(%c, %wide : tensor<40x24xf32>, tensor<40x24xf32>) outs(%empty : tensor<40x24xf32>) -> tensor<40x24xf32>
  %r = linalg.map ins(%sum : tensor<40x24xf32>) outs(%empty : tensor<40x24xf32>)
    (%x: f32, %o: f32) {
      %m = arith.maximumf %x, %zero : f32
      linalg.yield %m : f32
    }
  // expected-remark @+1 {{fused into the epilogue: arith.addf, arith.maximumf, arith.truncf; reads argument 2 along dimension 1}}
  %h = arith.truncf %r : tensor<40x24xf32> to tensor<40x24xf16>
  return %h : tensor<40x24xf16>
}

// -----

// An accumulator that is an argument is added to the sums; the product starts from zeros.
// CHECK-LABEL: func.func @start(
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<40x24xf32>
// CHECK: %[[C:.*]] = linalg.matmul {{.*}} outs(%[[Z]] :
// CHECK-NEXT: "tc.epilogue"(%[[C]]) ({
// CHECK-NEXT: ^bb0(%[[S:.*]]: f32):
// CHECK-NEXT: %[[I:.*]] = "tc.element"(%arg2)
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[I]], %[[S]] : f32
// CHECK-NEXT: "tc.yield"(%[[T]])
func.func @start(%a: tensor<40x16xf16>, %b: tensor<16x24xf16>, %c: tensor<40x24xf32>) -> tensor<40x24xf32> {
  // expected-remark @+1 {{fused into the epilogue: the accumulator's start; reads argument 2 along dimensions 0, 1}}
  %d = linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x24xf16>) outs(%c : tensor<40x24xf32>) -> tensor<40x24xf32>
  return %d : tensor<40x24xf32>
}

// -----

// A residual that is transposed, a column of scales with a dimension of extent 1, a number.
// CHECK-DAG: #[[T:map[0-9]*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[M:map[0-9]*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[S:map[0-9]*]] = affine_map<(d0, d1) -> ()>
// CHECK-LABEL: func.func @reads(
// CHECK: "tc.element"(%arg2) {map = #[[T]]}
// CHECK: "tc.element"(%arg3) {map = #[[M]]}
// CHECK: "tc.element"(%arg4) {map = #[[S]]}
func.func @reads(%a: tensor<40x16xi8>, %b: tensor<16x24xi8>, %r: tensor<24x40xi32>, %s: tensor<40x1xf32>, %t: tensor<f32>) -> tensor<40x24xf32> {
  %zero = arith.constant dense<0> : tensor<40x24xi32>
  %empty = tensor.empty() : tensor<40x24xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x16xi8>, tensor<16x24xi8>) outs(%zero : tensor<40x24xi32>) -> tensor<40x24xi32>
  %iempty = tensor.empty() : tensor<40x24xi32>
  %turned = linalg.transpose ins(%r : tensor<24x40xi32>) outs(%iempty : tensor<40x24xi32>) permutation = [1, 0]
  // expected-remark @+1 {{fused into the epilogue: arith.addi, arith.sitofp, arith.mulf, arith.mulf; reads argument 2 along dimensions 1, 0, argument 3 along dimension 0, argument 4 as a scalar}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, 0)>, affine_map<(m, n) -> ()>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%c, %turned, %s, %t : tensor<40x24xi32>, tensor<40x24xi32>, tensor<40x1xf32>, tensor<f32>) outs(%empty : tensor<40x24xf32>) {
  ^bb0(%x: i32, %q: i32, %row: f32, %all: f32, %o: f32):
    %0 = arith.addi %x, %q : i32
    %1 = arith.sitofp %0 : i32 to f32
    %2 = arith.mulf %1, %row : f32
    %3 = arith.mulf %2, %all : f32
    linalg.yield %3 : f32
  } -> tensor<40x24xf32>
  return %y : tensor<40x24xf32>
}

// -----

// A lone rounding stays: raise-to-tc makes it part of the product.
// CHECK-LABEL: func.func @rounded(
// CHECK-NOT: tc.epilogue
// TC-LABEL: func.func @rounded(
// TC-NEXT: "tc.matmul"{{.*}} -> tensor<8x8xf16>
// TC-NEXT: return
func.func @rounded(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %acc = arith.constant dense<0.0> : tensor<8x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  %h = arith.truncf %c : tensor<8x8xf32> to tensor<8x8xf16>
  return %h : tensor<8x8xf16>
}

// -----

// A quantiser stays behind the epilogue, and reads it.
// CHECK-LABEL: func.func @quantised(
// CHECK: %[[E:.*]] = "tc.epilogue"
// CHECK: %[[Q:.*]]:2 = "tc.quantise_blocks"(%[[E]], %arg3)
// CHECK-NEXT: return %[[Q]]#0, %[[Q]]#1
// TC-LABEL: func.func @quantised(
// TC: %[[C:.*]] = "tc.matmul"
// TC-NEXT: %[[E:.*]] = "tc.epilogue"(%[[C]])
// TC: "tc.quantise_blocks"(%[[E]], %arg3)
func.func @quantised(%a: tensor<40x16xf16>, %b: tensor<16x64xf16>, %bias: tensor<64xf32>, %norm: tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>) {
  %zero = arith.constant dense<0.0> : tensor<40x64xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x64xf16>) outs(%zero : tensor<40x64xf32>) -> tensor<40x64xf32>
  %empty = tensor.empty() : tensor<40x64xf32>
  %wide = linalg.broadcast ins(%bias : tensor<64xf32>) outs(%empty : tensor<40x64xf32>) dimensions = [0]
  // expected-remark @+1 {{fused into the epilogue: arith.addf; reads argument 2 along dimension 1}}
  %y = arith.addf %c, %wide : tensor<40x64xf32>
  // expected-remark @+1 {{quantised to NVFP4, times argument 3: blocks of 16 f4E2M1FN of a row, their scales f8E4M3FN in blocks of 128 x 4}}
  %q:2 = "tc.quantise_blocks"(%y, %norm) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<40x64xf32>, tensor<f32>) -> (tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>)
  return %q#0, %q#1 : tensor<40x64xf4E2M1FN>, tensor<1x1x512xf8E4M3FN>
}

// -----

// CHECK-LABEL: func.func @plain(
// CHECK: %[[C:.*]] = linalg.matmul
// CHECK-NEXT: "tc.quantise_blocks"(%[[C]])
// TC-LABEL: func.func @plain(
// TC: %[[C:.*]] = "tc.matmul"
// TC-NEXT: "tc.quantise_blocks"(%[[C]])
func.func @plain(%a: tensor<40x16xf16>, %b: tensor<16x128xf16>) -> (tensor<40x128xf8E5M2>, tensor<1x1x512xf8E8M0FNU>) {
  %zero = arith.constant dense<0.0> : tensor<40x128xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x128xf16>) outs(%zero : tensor<40x128xf32>) -> tensor<40x128xf32>
  // expected-remark @+1 {{quantised to MXFP8: blocks of 32 f8E5M2 of a row, their scales f8E8M0FNU in blocks of 128 x 4}}
  %q:2 = "tc.quantise_blocks"(%c) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x128xf32>) -> (tensor<40x128xf8E5M2>, tensor<1x1x512xf8E8M0FNU>)
  return %q#0, %q#1 : tensor<40x128xf8E5M2>, tensor<1x1x512xf8E8M0FNU>
}

// -----

// Three blocks to a row, scales rounded up.
// CHECK-LABEL: func.func @rounded_up(
// CHECK: "tc.quantise_blocks"(%{{.*}}) {{.*}}scale_rounding = "rceil"
func.func @rounded_up(%a: tensor<40x16xf16>, %b: tensor<16x96xf16>) -> (tensor<40x96xf8E5M2>, tensor<1x1x512xf8E8M0FNU>) {
  %zero = arith.constant dense<0.0> : tensor<40x96xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x96xf16>) outs(%zero : tensor<40x96xf32>) -> tensor<40x96xf32>
  // expected-remark @+1 {{quantised to MXFP8: blocks of 32 f8E5M2 of a row, their scales f8E8M0FNU, rounded up where an element would saturate, in blocks of 128 x 4}}
  %q:2 = "tc.quantise_blocks"(%c) {scale_rounding = "rceil", operandSegmentSizes = array<i32: 1, 0>} : (tensor<40x96xf32>) -> (tensor<40x96xf8E5M2>, tensor<1x1x512xf8E8M0FNU>)
  return %q#0, %q#1 : tensor<40x96xf8E5M2>, tensor<1x1x512xf8E8M0FNU>
}

// -----

// Gate and value in alternating columns: an element is made of two sums.
// CHECK-LABEL: func.func @gated(
// CHECK: %[[C:.*]] = linalg.matmul
// CHECK-NEXT: "tc.epilogue"(%[[C]]) ({
// CHECK-NEXT: ^bb0(%[[G:.*]]: f32, %[[V:.*]]: f32):
// CHECK-NEXT: %[[Z:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[R:.*]] = arith.maximumf %[[G]], %[[Z]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[R]], %[[V]]
// CHECK-NEXT: "tc.yield"(%[[P]])
// CHECK-NEXT: }) : (tensor<40x64xf32>) -> tensor<40x32xf32>
func.func @gated(%a: tensor<40x16xf16>, %b: tensor<16x64xf16>) -> tensor<40x32xf32> {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<40x64xf32>
  %none = arith.constant dense<0.0> : tensor<40x32xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x64xf16>) outs(%zeros : tensor<40x64xf32>) -> tensor<40x64xf32>
  %gate = tensor.extract_slice %c[0, 0] [40, 32] [1, 2] : tensor<40x64xf32> to tensor<40x32xf32>
  %value = tensor.extract_slice %c[0, 1] [40, 32] [1, 2] : tensor<40x64xf32> to tensor<40x32xf32>
  %r = arith.maximumf %gate, %none : tensor<40x32xf32>
  // expected-remark @+1 {{fused into the epilogue: arith.maximumf, arith.mulf}}
  %p = arith.mulf %r, %value : tensor<40x32xf32>
  return %p : tensor<40x32xf32>
}

// -----

// Behind a convolution: sums that start from a bias, a residual, relu.
// CHECK-DAG: #[[K:map[0-9]*]] = affine_map<(d0, d1, d2, d3) -> (d3)>
// CHECK-DAG: #[[PIXEL:map[0-9]*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
// CHECK-LABEL: func.func @block(
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : tensor<1x4x4x16xf32>
// CHECK: %[[C:.*]] = linalg.conv_2d_nhwc_hwcf {{.*}} outs(%[[Z]] :
// CHECK-NEXT: "tc.epilogue"(%[[C]]) ({
// CHECK: "tc.element"(%arg2) {map = #[[K]]}
// CHECK: "tc.element"(%arg3) {map = #[[PIXEL]]}
// TC-LABEL: func.func @block(
// TC-NEXT: %[[C:.*]] = "tc.conv2d"(%arg0, %arg1) {{.*}} -> tensor<1x4x4x16xf32>
// TC-NEXT: "tc.epilogue"(%[[C]])
func.func @block(%x: tensor<1x4x4x8xf16>, %w: tensor<1x1x8x16xf16>, %bias: tensor<16xf32>, %r: tensor<1x4x4x16xf32>) -> tensor<1x4x4x16xf32> {
  %empty = tensor.empty() : tensor<1x4x4x16xf32>
  %start = linalg.broadcast ins(%bias : tensor<16xf32>) outs(%empty : tensor<1x4x4x16xf32>) dimensions = [0, 1, 2]
  %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<1x4x4x8xf16>, tensor<1x1x8x16xf16>) outs(%start : tensor<1x4x4x16xf32>) -> tensor<1x4x4x16xf32>
  %sum = arith.addf %c, %r : tensor<1x4x4x16xf32>
  %zeros = arith.constant dense<0.0> : tensor<1x4x4x16xf32>
  // expected-remark @+1 {{fused into the epilogue: the accumulator's start, arith.addf, arith.maximumf; reads argument 2 along dimension 3, argument 3 along dimensions 0, 1, 2, 3}}
  %y = arith.maximumf %sum, %zeros : tensor<1x4x4x16xf32>
  return %y : tensor<1x4x4x16xf32>
}

// -----

// A block-scaled product that came in as an op.
// CHECK-LABEL: func.func @scaled(
// CHECK: %[[C:.*]] = "tc.block_scaled_matmul"
// CHECK-NEXT: "tc.epilogue"(%[[C]]) ({
// CHECK: arith.addf
// CHECK: }) : (tensor<128x64xf32>) -> tensor<128x64xf16>
// TC-LABEL: func.func @scaled(
// TC: "tc.epilogue"
func.func @scaled(%a: tensor<128x256xf4E2M1FN>, %sa: tensor<128x16xf8E4M3FN>, %b: tensor<64x256xf4E2M1FN>, %sb: tensor<64x16xf8E4M3FN>, %bias: tensor<64xf32>) -> tensor<128x64xf16> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<128x256xf4E2M1FN>, tensor<128x16xf8E4M3FN>, tensor<64x256xf4E2M1FN>, tensor<64x16xf8E4M3FN>) -> tensor<128x64xf32>
  %empty = tensor.empty() : tensor<128x64xf16>
  // expected-remark @below {{fused into the epilogue: arith.addf, arith.truncf; reads argument 4 along dimension 1}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%c, %bias : tensor<128x64xf32>, tensor<64xf32>) outs(%empty : tensor<128x64xf16>) {
  ^bb0(%s: f32, %t: f32, %o: f16):
    %u = arith.addf %s, %t : f32
    %r = arith.truncf %u : f32 to f16
    linalg.yield %r : f16
  } -> tensor<128x64xf16>
  return %y : tensor<128x64xf16>
}
