// A launch for each product, with its epilogue, and for reductions of the same rows; elementwise ops between go to their readers.
// RUN: %tc-opt %s --split-input-file --split-layers --verify-diagnostics | %filecheck %s

#mn = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
#m = affine_map<(m, n) -> (m)>

// Inputs are buffers 0 to 3, the result 4; 5 is the scores, 6 a factor. The maximum of each row stays in the launch that reads it.
// CHECK: module attributes {tc.workspaces = array<i64: 2048, 1024>}
// CHECK: func.func @f_0_matmul(%[[X:.*]]: tensor<16x8xf16>, %[[W:.*]]: tensor<8x32xf16>, %[[B:.*]]: tensor<32xf32>) -> tensor<16x32xf32> attributes {tc.args = array<i64: 0, 1, 2, 5>, tc.order = 0 : i64}
// CHECK: linalg.matmul ins(%[[X]], %[[W]]
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[B]]
// CHECK: arith.addf
// CHECK: func.func @f_1_truncf(%[[S:.*]]: tensor<16x32xf32>) -> tensor<16x32xf16> attributes {tc.args = array<i64: 5, 6>, tc.order = 1 : i64, tc.simt}
// CHECK: arith.maximumf
// CHECK: arith.subf
// CHECK: arith.truncf
// CHECK: func.func @f_2_matmul(%{{.*}}: tensor<16x32xf16>, %{{.*}}: tensor<32x8xf16>) -> tensor<16x8xf32> attributes {tc.args = array<i64: 6, 3, 4>, tc.order = 2 : i64}
// CHECK-NOT: func.func @f(
func.func @f(%x: tensor<16x8xf16>, %w: tensor<8x32xf16>, %b: tensor<32xf32>, %v: tensor<32x8xf16>, %out: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<16xf32>
  %e2 = tensor.empty() : tensor<16x32xf16>
  %z = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %c = linalg.matmul ins(%x, %w : tensor<16x8xf16>, tensor<8x32xf16>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  // expected-remark @+1 {{launch 1 of 3, @f_0_matmul: linalg.matmul, its epilogue arith.addf; writes workspace 5, 2048 bytes}}
  %s = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]} ins(%c, %b : tensor<16x32xf32>, tensor<32xf32>) outs(%e0 : tensor<16x32xf32>) {
  ^bb0(%a: f32, %y: f32, %o: f32):
    %t = arith.addf %a, %y : f32
    linalg.yield %t : f32
  } -> tensor<16x32xf32>
  %i = linalg.fill ins(%low : f32) outs(%e1 : tensor<16xf32>) -> tensor<16xf32>
  %r = linalg.generic {indexing_maps = [#mn, #m], iterator_types = ["parallel", "reduction"]} ins(%s : tensor<16x32xf32>) outs(%i : tensor<16xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<16xf32>
  %d = linalg.generic {indexing_maps = [#mn, #m, #mn], iterator_types = ["parallel", "parallel"]} ins(%s, %r : tensor<16x32xf32>, tensor<16xf32>) outs(%e0 : tensor<16x32xf32>) {
  ^bb0(%a: f32, %y: f32, %o: f32):
    %t = arith.subf %a, %y : f32
    linalg.yield %t : f32
  } -> tensor<16x32xf32>
  // expected-remark @+1 {{launch 2 of 3, @f_1_truncf: linalg.generic on CUDA cores, with arith.maximumf, arith.subf; not fused behind a product: what it reads is computed on CUDA cores; writes workspace 6, 1024 bytes}}
  %h = linalg.generic {indexing_maps = [#mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%d : tensor<16x32xf32>) outs(%e2 : tensor<16x32xf16>) {
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<16x32xf16>
  %z2 = linalg.fill ins(%zero : f32) outs(%out : tensor<16x8xf32>) -> tensor<16x8xf32>
  // expected-remark @+1 {{launch 3 of 3, @f_2_matmul: linalg.matmul, nothing fused behind it; writes result 4, 512 bytes}}
  %y = linalg.matmul ins(%h, %v : tensor<16x32xf16>, tensor<32x8xf16>) outs(%z2 : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// -----

// One product and what fuses behind it: fuse-epilogue's, as it is.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT: tc.order
func.func @whole(%x: tensor<16x8xf16>, %w: tensor<8x32xf16>, %r: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  %c = linalg.matmul ins(%x, %w : tensor<16x8xf16>, tensor<8x32xf16>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  %y = arith.addf %c, %r : tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// -----

// Sums that two ops read are stored as they are. A reshape is another shape of the same buffer: 2 is the result of
// the first launch, as the function returns it, and read by the second.
// CHECK: tc.workspaces = array<i64>
// CHECK: func.func @twice_0_matmul({{.*}}) -> tensor<16x32xf32> attributes {tc.args = array<i64: 0, 1, 2>, tc.order = 0 : i64}
// CHECK: func.func @twice_1_maximumf(%{{.*}}: tensor<16x32xf32>) -> tensor<16x32xf32> attributes {tc.args = array<i64: 2, 3>, tc.order = 1 : i64, tc.simt}
func.func @twice(%x: tensor<16x8xf16>, %w: tensor<8x32xf16>) -> (tensor<512xf32>, tensor<16x32xf32>) {
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  // expected-remark @+1 {{launch 1 of 2, @twice_0_matmul: linalg.matmul, nothing fused behind it; writes result 2, 2048 bytes}}
  %c = linalg.matmul ins(%x, %w : tensor<16x8xf16>, tensor<8x32xf16>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  %v = tensor.collapse_shape %c [[0, 1]] : tensor<16x32xf32> into tensor<512xf32>
  // expected-remark @+1 {{not fused behind a product: the sums are read by other ops as well; writes result 3, 2048 bytes}}
  %y = arith.maximumf %c, %z : tensor<16x32xf32>
  return %v, %y : tensor<512xf32>, tensor<16x32xf32>
}

// -----

// An op that reads two products is behind the first, launched last.
// CHECK: func.func @gated_0_matmul(%{{.*}}: tensor<16x8xf16>, %{{.*}}: tensor<8x32xf16>) -> tensor<16x32xf32> attributes {tc.args = array<i64: 0, 2, 4>, tc.order = 0 : i64}
// CHECK: func.func @gated_1_matmul(%{{.*}}: tensor<16x8xf16>, %{{.*}}: tensor<8x32xf16>, %{{.*}}: tensor<16x32xf32>) -> tensor<16x32xf32> attributes {tc.args = array<i64: 0, 1, 4, 3>, tc.order = 1 : i64}
// CHECK: arith.mulf
func.func @gated(%x: tensor<16x8xf16>, %w: tensor<8x32xf16>, %u: tensor<8x32xf16>) -> tensor<16x32xf32> {
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  %c = linalg.matmul ins(%x, %w : tensor<16x8xf16>, tensor<8x32xf16>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  // expected-remark @+1 {{launch 1 of 2}}
  %d = linalg.matmul ins(%x, %u : tensor<16x8xf16>, tensor<8x32xf16>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  // expected-remark @+1 {{launch 2 of 2}}
  %y = arith.mulf %c, %d : tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// -----

// A buffer is written once: results that are arguments, or one tensor twice, are copied.
// CHECK-LABEL: func.func @argument_0_negf(
// CHECK: func.func @argument_1_copy(%{{.*}}: tensor<16x8xf32>) -> tensor<16x8xf32> attributes {tc.args = array<i64: 0, 2>
// CHECK: func.func @argument_2_copy(%{{.*}}: tensor<16x8xf32>) -> tensor<128xf32> attributes {tc.args = array<i64: 1, 3>
func.func @argument(%x: tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>, tensor<128xf32>) {
  // expected-remark @+1 {{launch 1 of 3}}
  %y = arith.negf %x : tensor<16x8xf32>
  %z = tensor.collapse_shape %y [[0, 1]] : tensor<16x8xf32> into tensor<128xf32>
  // expected-remark @+2 {{launch 2 of 3, @argument_1_copy: linalg.copy on CUDA cores; writes result 2, 512 bytes}}
  // expected-remark @+1 {{launch 3 of 3, @argument_2_copy: linalg.copy on CUDA cores, with tensor.collapse_shape; writes result 3, 512 bytes}}
  return %y, %x, %z : tensor<16x8xf32>, tensor<16x8xf32>, tensor<128xf32>
}

// -----

func.func @dynamic(%x: tensor<?x8xf32>, %v: tensor<8xf32>) -> (tensor<8xf32>, tensor<?x8xf32>) {
  %y = arith.negf %v : tensor<8xf32>
  // expected-error @+1 {{expected results that are arguments to be of static shapes (a launch copies them, as a buffer is written once), got tensor<?x8xf32>}}
  return %y, %x : tensor<8xf32>, tensor<?x8xf32>
}

// -----

// The body of a gather is fused into what reads it, with what it asserts; nothing is left of it.
// CHECK-LABEL: func.func @asserts_0_negf(
// CHECK-NOT: func.func
func.func @asserts(%x: tensor<8xf32>, %at: tensor<4xi64>) -> tensor<4xf32> {
  linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%at : tensor<4xi64>) {
  ^bb0(%i: i64):
    %zero = arith.constant 0 : i64
    %inside = arith.cmpi sge, %i, %zero : i64
    cf.assert %inside, "index below 0"
    linalg.yield
  }
  %e = tensor.empty() : tensor<4xf32>
  %s = tensor.extract_slice %x[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  // expected-remark @+1 {{launch 1 of 1}}
  %y = arith.negf %s : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Results of the same rows are one launch; the place of the largest is found by reductions of its own.
// CHECK-LABEL: func.func @two_0_maximumf(
// The first NaN, the largest before it, the first place of that, and the choice of it.
// CHECK: arith.cmpf uno
// CHECK: arith.maximumf
// CHECK: arith.cmpf oeq
// CHECK: arith.minsi
// CHECK: arith.cmpf ogt
// CHECK: return %{{.*}}#0, %{{.*}} : tensor<16xf32>, tensor<16xi64>
func.func @two(%x: tensor<16x8xf32>) -> (tensor<16xf32>, tensor<16xi64>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<16xf32>
  %f = tensor.empty() : tensor<16xi64>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %j = linalg.fill ins(%zero : i64) outs(%f : tensor<16xi64>) -> tensor<16xi64>
  // expected-remark @+1 {{launch 1 of 1, @two_0_maximumf: linalg.generic on CUDA cores, with arith.cmpf, linalg.index, arith.index_cast, arith.select, arith.minsi, arith.cmpi, arith.maximumf; writes result 1, 64 bytes and result 2, 128 bytes}}
  %y:2 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x8xf32>) outs(%i, %j : tensor<16xf32>, tensor<16xi64>) {
  ^bb0(%a: f32, %o: f32, %p: i64):
    %n = linalg.index 1 : index
    %k = arith.index_cast %n : index to i64
    %m = arith.maximumf %a, %o : f32
    %c = arith.cmpf ogt, %a, %o : f32
    %s = arith.select %c, %k, %p : i64
    linalg.yield %m, %s : f32, i64
  } -> (tensor<16xf32>, tensor<16xi64>)
  return %y#0, %y#1 : tensor<16xf32>, tensor<16xi64>
}

// -----

// A sum whose dimension is kept: a reduction all the same, in the launch of what reads it.
// CHECK-LABEL: func.func @keep_0_subf(%{{.*}}: tensor<16x8xf32>)
func.func @keep(%x: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x1xf32>
  %f = tensor.empty() : tensor<16x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16x1xf32>) -> tensor<16x1xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, 0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x8xf32>) outs(%i : tensor<16x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %o : f32
    linalg.yield %t : f32
  } -> tensor<16x1xf32>
  // expected-remark @+1 {{launch 1 of 1, @keep_0_subf}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, 0)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<16x8xf32>, tensor<16x1xf32>) outs(%f : tensor<16x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// -----

// linalg.softmax: maximum, exponentials and their sum, quotients in one launch.
// CHECK-LABEL: func.func @softmax_0_divf(
// CHECK: math.exp
func.func @softmax(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %e = tensor.empty() : tensor<8x6xf32>
  // expected-remark @+1 {{launch 1 of 1, @softmax_0_divf}}
  %y = linalg.softmax dimension(0) ins(%x : tensor<8x6xf32>) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// -----

func.func @asserted(%x: tensor<16x8xf32>, %i: index) -> tensor<16x8xf32> {
  %n = arith.constant 16 : index
  %c = arith.cmpi slt, %i, %n : index
  // expected-error @+1 {{expected ops with results of static shapes where a function is cut into launches (buffers between them are planned when it is compiled), got none of cf.assert}}
  cf.assert %c, "inside"
  %y = arith.negf %x : tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}

// -----

// The image of a depthwise convolution is stored if arithmetic computes it: windows would repeat that for every tap.
// CHECK: func.func @image_0_exp(%{{.*}}: tensor<1x9x9x16xf16>) -> tensor<1x9x9x16xf16>
// CHECK: func.func @image_1_depthwise_conv_2d_nhwc_hwc(%{{.*}}: tensor<1x9x9x16xf16>, %{{.*}}: tensor<3x3x16xf16>)
// CHECK-NOT: math.exp
func.func @image(%x: tensor<1x9x9x16xf16>, %w: tensor<3x3x16xf16>) -> tensor<1x9x9x16xf16> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  // expected-remark @+1 {{launch 1 of 2}}
  %y = math.exp %x : tensor<1x9x9x16xf16>
  %p = tensor.pad %y low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %none : f16
  } : tensor<1x9x9x16xf16> to tensor<1x11x11x16xf16>
  %e = tensor.empty() : tensor<1x9x9x16xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x9x9x16xf32>) -> tensor<1x9x9x16xf32>
  %c = linalg.depthwise_conv_2d_nhwc_hwc ins(%p, %w : tensor<1x11x11x16xf16>, tensor<3x3x16xf16>) outs(%z : tensor<1x9x9x16xf32>) -> tensor<1x9x9x16xf32>
  // expected-remark @+1 {{launch 2 of 2}}
  %t = arith.truncf %c : tensor<1x9x9x16xf32> to tensor<1x9x9x16xf16>
  return %t : tensor<1x9x9x16xf16>
}

// -----

// A depthwise convolution is one launch on CUDA cores with what is behind it, in any shape of the same elements.
// CHECK: func.func @depthwise_0_depthwise_conv_2d_nhwc_hwc(%{{.*}}: tensor<1x9x9x16xf16>, %{{.*}}: tensor<3x3x16xf16>) -> tensor<49x16xf16> attributes {tc.args = array<i64: 0, 1, 2>, tc.simt}
// CHECK: linalg.depthwise_conv_2d_nhwc_hwc
// CHECK: tensor.collapse_shape
// CHECK: arith.truncf
func.func @depthwise(%x: tensor<1x9x9x16xf16>, %w: tensor<3x3x16xf16>) -> tensor<49x16xf16> {
  %z = arith.constant dense<0.0> : tensor<1x7x7x16xf32>
  %c = linalg.depthwise_conv_2d_nhwc_hwc ins(%x, %w : tensor<1x9x9x16xf16>, tensor<3x3x16xf16>) outs(%z : tensor<1x7x7x16xf32>) -> tensor<1x7x7x16xf32>
  %v = tensor.collapse_shape %c [[0, 1, 2], [3]] : tensor<1x7x7x16xf32> into tensor<49x16xf32>
  // expected-remark @+1 {{launch 1 of 1, @depthwise_0_depthwise_conv_2d_nhwc_hwc: linalg.depthwise_conv_2d_nhwc_hwc on CUDA cores, with tensor.collapse_shape, arith.truncf; no tensor cores: each output channel of a depthwise filter multiplies one input channel, but an mma sums over 32 bytes of channels, so all other channels would be zeros; writes result 2, 1568 bytes}}
  %y = arith.truncf %v : tensor<49x16xf32> to tensor<49x16xf16>
  return %y : tensor<49x16xf16>
}

// -----

// Between convolutions for tensor cores it is a launch in order; a group of 16 outputs and 16 channels is for tensor cores.
// CHECK: func.func @separable_0_depthwise_conv_2d_nhwc_hwc({{.*}}) -> tensor<1x7x7x32xf16> attributes {tc.args = array<i64: 0, 1, 4>, tc.order = 0 : i64, tc.simt}
// CHECK: func.func @separable_1_conv_2d_nhwc_hwcf({{.*}}) -> tensor<1x7x7x32xf32> attributes {tc.args = array<i64: 4, 2, 3>, tc.order = 1 : i64}
func.func @separable(%x: tensor<1x9x9x32xf16>, %w: tensor<3x3x32xf16>, %p: tensor<1x1x32x32xf16>) -> tensor<1x7x7x32xf32> {
  %z = arith.constant dense<0.0> : tensor<1x7x7x32xf32>
  %c = linalg.depthwise_conv_2d_nhwc_hwc ins(%x, %w : tensor<1x9x9x32xf16>, tensor<3x3x32xf16>) outs(%z : tensor<1x7x7x32xf32>) -> tensor<1x7x7x32xf32>
  // expected-remark @+1 {{launch 1 of 2}}
  %h = arith.truncf %c : tensor<1x7x7x32xf32> to tensor<1x7x7x32xf16>
  // expected-remark @+1 {{launch 2 of 2, @separable_1_conv_2d_nhwc_hwcf: linalg.conv_2d_nhwc_hwcf, nothing fused behind it}}
  %y = linalg.conv_2d_nhwc_hwcf ins(%h, %p : tensor<1x7x7x32xf16>, tensor<1x1x32x32xf16>) outs(%z : tensor<1x7x7x32xf32>) -> tensor<1x7x7x32xf32>
  return %y : tensor<1x7x7x32xf32>
}

// -----

#mn = affine_map<(m, n) -> (m, n)>

// An op that reads two products is behind the one whose sums would be stored whole: f32, not f16.
// CHECK: func.func @shortcut_first_0_matmul
// CHECK: arith.truncf
// CHECK: return %{{.*}} : tensor<16x32xf16>
// CHECK: func.func @shortcut_first_1_matmul
// CHECK: arith.extf
// CHECK: arith.addf
// CHECK-NOT: func.func
func.func @shortcut_first(%x: tensor<16x8xf16>, %w: tensor<8x32xf16>, %v: tensor<8x32xf16>) -> tensor<16x32xf32> {
  %z = arith.constant dense<0.0> : tensor<16x32xf32>
  %s = linalg.matmul ins(%x, %w : tensor<16x8xf16>, tensor<8x32xf16>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  // expected-remark @+1 {{launch 1 of 2, @shortcut_first_0_matmul: linalg.matmul, its epilogue arith.truncf; writes workspace 4, 1024 bytes}}
  %t = arith.truncf %s : tensor<16x32xf32> to tensor<16x32xf16>
  %c = linalg.matmul ins(%x, %v : tensor<16x8xf16>, tensor<8x32xf16>) outs(%z : tensor<16x32xf32>) -> tensor<16x32xf32>
  %e = tensor.empty() : tensor<16x32xf32>
  // expected-remark @+1 {{launch 2 of 2, @shortcut_first_1_matmul: linalg.matmul, its epilogue arith.extf, arith.addf; writes result 3, 2048 bytes}}
  %y = linalg.generic {indexing_maps = [#mn, #mn, #mn], iterator_types = ["parallel", "parallel"]} ins(%c, %t : tensor<16x32xf32>, tensor<16x32xf16>) outs(%e : tensor<16x32xf32>) {
  ^bb0(%a: f32, %b: f16, %o: f32):
    %f = arith.extf %b : f16 to f32
    %g = arith.addf %a, %f : f32
    linalg.yield %g : f32
  } -> tensor<16x32xf32>
  return %y : tensor<16x32xf32>
}

// -----

// What an epilogue's operand is computed from is indexed by rows and columns, too; else it is stored. Rows are (b, m)
// where all batches have the same factor.
// CHECK-LABEL: func.func @embedding_0_addf(%{{.*}}: tensor<2x24x32xf16>, %{{.*}}: tensor<24x32xf16>) -> tensor<2x24x32xf16>
// CHECK: func.func @embedding_1_matmul(%{{.*}}: tensor<2x4x24x8xf16>, %{{.*}}: tensor<4x8x32xf16>, %{{.*}}: tensor<2x24x32xf16>, %{{.*}}: tensor<2x24x32xf16>, %{{.*}}: tensor<32xf16>)
func.func @embedding(%x: tensor<2x4x24x8xf16>, %w: tensor<4x8x32xf16>, %h: tensor<2x24x32xf16>, %p: tensor<24x32xf16>, %v: tensor<32xf16>) -> tensor<2x24x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x24x32xf32>
  %f = tensor.empty() : tensor<2x24x32xf16>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x24x32xf32>) -> tensor<2x24x32xf32>
  // expected-remark @+1 {{launch 1 of 2, @embedding_0_addf: linalg.generic on CUDA cores}}
  %s = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (m, n)>, affine_map<(b, m, n) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%h, %p : tensor<2x24x32xf16>, tensor<24x32xf16>) outs(%f : tensor<2x24x32xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %t = arith.addf %a, %b : f16
    linalg.yield %t : f16
  } -> tensor<2x24x32xf16>
  %k = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (n)>, affine_map<(b, m, n) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%h, %v : tensor<2x24x32xf16>, tensor<32xf16>) outs(%f : tensor<2x24x32xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %t = arith.mulf %a, %b : f16
    linalg.yield %t : f16
  } -> tensor<2x24x32xf16>
  %c = linalg.generic {indexing_maps = [affine_map<(b, m, n, h, k) -> (b, h, m, k)>, affine_map<(b, m, n, h, k) -> (h, k, n)>, affine_map<(b, m, n, h, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%x, %w : tensor<2x4x24x8xf16>, tensor<4x8x32xf16>) outs(%i : tensor<2x24x32xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %q = arith.mulf %l, %r : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<2x24x32xf32>
  // expected-remark @+1 {{launch 2 of 2, @embedding_1_matmul}}
  %y = linalg.generic {indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%c, %s, %k : tensor<2x24x32xf32>, tensor<2x24x32xf16>, tensor<2x24x32xf16>) outs(%e : tensor<2x24x32xf32>) {
  ^bb0(%a: f32, %b: f16, %d: f16, %o: f32):
    %l = arith.extf %b : f16 to f32
    %r = arith.extf %d : f16 to f32
    %t = arith.addf %a, %l : f32
    %u = arith.mulf %t, %r : f32
    linalg.yield %u : f32
  } -> tensor<2x24x32xf32>
  return %y : tensor<2x24x32xf32>
}

// -----

// Two tensors that are returned read the sum: it is stored, and computed once.
// CHECK-LABEL: func.func @shared_0_reduce(
// CHECK-LABEL: func.func @shared_1_subf(%{{.*}}: tensor<16x8xf32>, %{{.*}}: tensor<16xf32>)
// CHECK-LABEL: func.func @shared_2_mulf(%{{.*}}: tensor<16x8xf32>, %{{.*}}: tensor<16xf32>)
func.func @shared(%x: tensor<16x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16xf32>
  %f = tensor.empty() : tensor<16x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  // expected-remark @+1 {{launch 1 of 3, @shared_0_reduce}}
  %s = linalg.reduce ins(%x : tensor<16x8xf32>) outs(%i : tensor<16xf32>) dimensions = [1] (%a: f32, %b: f32) {
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }
  %b = linalg.broadcast ins(%s : tensor<16xf32>) outs(%f : tensor<16x8xf32>) dimensions = [1]
  // expected-remark @+1 {{launch 2 of 3, @shared_1_subf}}
  %y = arith.subf %x, %b : tensor<16x8xf32>
  // expected-remark @+1 {{launch 3 of 3, @shared_2_mulf}}
  %z = arith.mulf %x, %b : tensor<16x8xf32>
  return %y, %z : tensor<16x8xf32>, tensor<16x8xf32>
}

// -----

// Sums over rows and over columns of one tensor: the sums of the other dimension are in memory.
// CHECK-LABEL: func.func @crossed_0_reduce(
// CHECK-LABEL: func.func @crossed_1_reduce(
func.func @crossed(%x: tensor<16x8xf32>) -> tensor<16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %g = tensor.empty() : tensor<16xf32>
  %f = tensor.empty() : tensor<16x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %j = linalg.fill ins(%zero : f32) outs(%g : tensor<16xf32>) -> tensor<16xf32>
  // expected-remark @+1 {{launch 1 of 2, @crossed_0_reduce}}
  %s = linalg.reduce ins(%x : tensor<16x8xf32>) outs(%i : tensor<8xf32>) dimensions = [0] (%a: f32, %b: f32) {
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }
  %b = linalg.broadcast ins(%s : tensor<8xf32>) outs(%f : tensor<16x8xf32>) dimensions = [0]
  %y = arith.subf %x, %b : tensor<16x8xf32>
  // expected-remark @+1 {{launch 2 of 2, @crossed_1_reduce}}
  %z = linalg.reduce ins(%y : tensor<16x8xf32>) outs(%j : tensor<16xf32>) dimensions = [1] (%a: f32, %c: f32) {
    %t = arith.addf %a, %c : f32
    linalg.yield %t : f32
  }
  return %z : tensor<16xf32>
}
