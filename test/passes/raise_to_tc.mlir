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

// A vector is one column, K last: the bytes that it has.
// CHECK-LABEL: func.func @matvec(
// CHECK-NEXT: %[[X:.*]] = tensor.expand_shape %arg1 {{\[\[}}0, 1]] output_shape [1, 24] : tensor<24xf16> into tensor<1x24xf16>
// CHECK-NEXT: %[[Y:.*]] = "tc.matmul"(%arg0, %[[X]]) {a_layout = "mk", b_layout = "nk"} : (tensor<40x24xf16>, tensor<1x24xf16>) -> tensor<40x1xf32>
// CHECK-NEXT: %[[V:.*]] = tensor.collapse_shape %[[Y]]
// CHECK-NEXT: return %[[V]] : tensor<40xf32>
func.func @matvec(%a: tensor<40x24xf16>, %x: tensor<24xf16>) -> tensor<40xf32> {
  %zero = arith.constant dense<0.0> : tensor<40xf32>
  %y = linalg.matvec ins(%a, %x : tensor<40x24xf16>, tensor<24xf16>) outs(%zero : tensor<40xf32>) -> tensor<40xf32>
  return %y : tensor<40xf32>
}

// -----

// CHECK-LABEL: func.func @dot(
// CHECK: "tc.matmul"(%{{.*}}, %{{.*}}) {a_layout = "mk", b_layout = "nk"} : (tensor<1x24xbf16>, tensor<1x24xbf16>) -> tensor<1x1xf32>
// CHECK-NEXT: %[[V:.*]] = tensor.collapse_shape %{{.*}} [] : tensor<1x1xf32> into tensor<f32>
// CHECK-NEXT: return %[[V]]
func.func @dot(%a: tensor<24xbf16>, %b: tensor<24xbf16>) -> tensor<f32> {
  %zero = arith.constant dense<0.0> : tensor<f32>
  %y = linalg.dot ins(%a, %b : tensor<24xbf16>, tensor<24xbf16>) outs(%zero : tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// One column has K last, however it is written.
// CHECK-LABEL: func.func @column(
// CHECK: "tc.matmul"(%arg0, %{{.*}}) {a_layout = "mk", b_layout = "nk"} : (tensor<40x24xf16>, tensor<1x24xf16>) -> tensor<40x1xf32>
func.func @column(%a: tensor<40x24xf16>, %b: tensor<24x1xf16>) -> tensor<40x1xf32> {
  %zero = arith.constant dense<0.0> : tensor<40x1xf32>
  %y = linalg.matmul ins(%a, %b : tensor<40x24xf16>, tensor<24x1xf16>) outs(%zero : tensor<40x1xf32>) -> tensor<40x1xf32>
  return %y : tensor<40x1xf32>
}

// -----

// Rows of two dimensions, and what the epilogue reads in them; heads are a batch that lies inside.
// CHECK-LABEL: func.func @heads(
// CHECK-DAG: %[[Q:.*]] = "tc.repack"(%arg0) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x20x3x16xf16>) -> tensor<2x3x20x16xf16>
// CHECK-DAG: tensor.collapse_shape %[[Q]] {{\[\[}}0, 1], [2], [3]] : tensor<2x3x20x16xf16> into tensor<6x20x16xf16>
// CHECK: %[[S:.*]] = "tc.matmul"(%{{.*}}, %{{.*}}) {a_layout = "mk", b_layout = "nk"} : (tensor<6x20x16xf16>, tensor<6x24x16xf16>) -> tensor<6x20x24xf32>
// CHECK: %[[R:.*]] = tensor.collapse_shape %arg2 {{\[\[}}0, 1], [2], [3]] : tensor<2x3x20x24xf32> into tensor<6x20x24xf32>
// CHECK: %[[E:.*]] = "tc.epilogue"(%[[S]])
// CHECK: "tc.element"(%[[R]]) {map = #{{.*}}} : (tensor<6x20x24xf32>) -> f32
// CHECK: tensor.expand_shape %[[E]] {{\[\[}}0, 1], [2], [3]] output_shape [2, 3, 20, 24]
#q = affine_map<(b, h, i, j, k) -> (b, i, h, k)>
#k = affine_map<(b, h, i, j, k) -> (b, j, h, k)>
#s = affine_map<(b, h, i, j, k) -> (b, h, i, j)>
#same = affine_map<(b, h, i, j) -> (b, h, i, j)>
func.func @heads(%q: tensor<2x20x3x16xf16>, %k: tensor<2x24x3x16xf16>, %r: tensor<2x3x20x24xf32>) -> tensor<2x3x20x24xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x3x20x24xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x20x3x16xf16>, tensor<2x24x3x16xf16>) outs(%zero : tensor<2x3x20x24xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %x = arith.extf %a : f16 to f32
    %y = arith.extf %b : f16 to f32
    %m = arith.mulf %x, %y : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x3x20x24xf32>
  %e = "tc.epilogue"(%s) ({
  ^bb0(%sum: f32):
    %x = "tc.element"(%r) {map = #same} : (tensor<2x3x20x24xf32>) -> f32
    %y = arith.addf %sum, %x : f32
    "tc.yield"(%y) : (f32) -> ()
  }) : (tensor<2x3x20x24xf32>) -> tensor<2x3x20x24xf32>
  return %e : tensor<2x3x20x24xf32>
}

// -----

// Generalised: the fill, and the order of the loops.
// CHECK-LABEL: func.func @generalised(
// CHECK-NEXT: "tc.matmul"(%arg0, %arg1) {a_layout = "mk", b_layout = "nk"} : (tensor<8x16xf16>, tensor<24x16xf16>) -> tensor<8x24xf32>
func.func @generalised(%x: tensor<8x16xf16>, %w: tensor<24x16xf16>) -> tensor<8x24xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x24xf32>
  %f = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<8x24xf32>) {
  ^bb0(%o: f32):
    linalg.yield %zero : f32
  } -> tensor<8x24xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(k, m, n) -> (m, k)>, affine_map<(k, m, n) -> (n, k)>, affine_map<(k, m, n) -> (m, n)>], iterator_types = ["reduction", "parallel", "parallel"]}
      ins(%x, %w : tensor<8x16xf16>, tensor<24x16xf16>) outs(%f : tensor<8x24xf32>) {
  ^bb0(%a: f16, %b: f16, %o: f32):
    %p = arith.extf %a : f16 to f32
    %q = arith.extf %b : f16 to f32
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %m, %o : f32
    linalg.yield %s : f32
  } -> tensor<8x24xf32>
  return %c : tensor<8x24xf32>
}

// -----

// A convolution in one dimension has height 1.
// CHECK-LABEL: func.func @conv_1d(
// CHECK: %[[X:.*]] = tensor.expand_shape %arg0 {{.*}} : tensor<2x20x8xf16> into tensor<2x1x20x8xf16>
// CHECK: %[[W:.*]] = tensor.expand_shape %arg1 {{.*}} : tensor<3x8x16xf16> into tensor<1x3x8x16xf16>
// CHECK: %[[Y:.*]] = "tc.conv2d"(%[[X]], %[[W]]) {dilations = array<i64: 1, 1>, filter = "hwcf", pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 2>} : {{.*}} -> tensor<2x1x9x16xf32>
// CHECK: tensor.collapse_shape %[[Y]] {{.*}} : tensor<2x1x9x16xf32> into tensor<2x9x16xf32>
func.func @conv_1d(%x: tensor<2x20x8xf16>, %w: tensor<3x8x16xf16>) -> tensor<2x9x16xf32> {
  %z = arith.constant dense<0.0> : tensor<2x9x16xf32>
  %y = linalg.conv_1d_nwc_wcf {strides = dense<2> : vector<1xi64>, dilations = dense<1> : vector<1xi64>}
      ins(%x, %w : tensor<2x20x8xf16>, tensor<3x8x16xf16>) outs(%z : tensor<2x9x16xf32>) -> tensor<2x9x16xf32>
  return %y : tensor<2x9x16xf32>
}

// -----

// Groups lie next to each other in the channels: no copy. The bias of a group and an output is that of a channel.
// CHECK-LABEL: func.func @grouped(
// CHECK: %[[X:.*]] = tensor.collapse_shape %arg0 {{.*}} : tensor<1x9x9x2x16xf16> into tensor<1x9x9x32xf16>
// CHECK: %[[W:.*]] = tensor.collapse_shape %arg1 {{.*}} : tensor<2x16x3x3x16xf16> into tensor<32x3x3x16xf16>
// CHECK: %[[S:.*]] = "tc.conv2d"(%[[X]], %[[W]]) {dilations = array<i64: 1, 1>, filter = "fhwc", groups = 2 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : {{.*}} -> tensor<1x9x9x32xf32>
// CHECK: %[[B:.*]] = tensor.collapse_shape %arg2 {{.*}} : tensor<2x16xf32> into tensor<32xf32>
// CHECK: "tc.epilogue"(%[[S]])
// CHECK: "tc.element"(%[[B]]) {map = #[[MAP:.*]]} : (tensor<32xf32>) -> f32
func.func @grouped(%x: tensor<1x9x9x2x16xf16>, %w: tensor<2x16x3x3x16xf16>, %b: tensor<2x16xf32>) -> tensor<1x9x9x2x16xf32> {
  %z = arith.constant dense<0.0> : tensor<1x9x9x2x16xf32>
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 1, 1, 0, 0] high[0, 1, 1, 0, 0] {
  ^bb0(%i: index, %j: index, %k: index, %l: index, %m: index):
    tensor.yield %zero : f16
  } : tensor<1x9x9x2x16xf16> to tensor<1x11x11x2x16xf16>
  %y = linalg.conv_2d_nhwgc_gfhwc ins(%p, %w : tensor<1x11x11x2x16xf16>, tensor<2x16x3x3x16xf16>) outs(%z : tensor<1x9x9x2x16xf32>) -> tensor<1x9x9x2x16xf32>
  %e = "tc.epilogue"(%y) ({
  ^bb0(%sum: f32):
    %c = "tc.element"(%b) {map = affine_map<(n, p, q, g, k) -> (g, k)>} : (tensor<2x16xf32>) -> f32
    %t = arith.addf %sum, %c : f32
    "tc.yield"(%t) : (f32) -> ()
  }) : (tensor<1x9x9x2x16xf32>) -> tensor<1x9x9x2x16xf32>
  return %e : tensor<1x9x9x2x16xf32>
}

// -----

// A group of 8 channels is padded with zeros to the 16 over which an mma sums: what follows is another group.
// CHECK-LABEL: func.func @narrow_groups(
// CHECK: "tc.repack"(%arg0) {permutation = array<i64: 0, 1, 2, 3, 4>} : (tensor<1x9x9x2x8xf16>) -> tensor<1x9x9x2x16xf16>
// CHECK: "tc.repack"(%arg1) {permutation = array<i64: 0, 1, 2, 3, 4>} : (tensor<2x16x3x3x8xf16>) -> tensor<2x16x3x3x16xf16>
func.func @narrow_groups(%x: tensor<1x9x9x2x8xf16>, %w: tensor<2x16x3x3x8xf16>) -> tensor<1x7x7x2x16xf32> {
  %z = arith.constant dense<0.0> : tensor<1x7x7x2x16xf32>
  %y = linalg.conv_2d_nhwgc_gfhwc ins(%x, %w : tensor<1x9x9x2x8xf16>, tensor<2x16x3x3x8xf16>) outs(%z : tensor<1x7x7x2x16xf32>) -> tensor<1x7x7x2x16xf32>
  return %y : tensor<1x7x7x2x16xf32>
}

// -----

// CHECK-LABEL: func.func @unsigned(
// CHECK: "tc.matmul"(%arg0, %arg1) {a_layout = "mk", b_layout = "kn", unsigned = array<i64: 1, 0>}
func.func @unsigned(%a: tensor<16x16xi8>, %b: tensor<16x16xi8>) -> tensor<16x16xi32> {
  %acc = arith.constant dense<0> : tensor<16x16xi32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b : tensor<16x16xi8>, tensor<16x16xi8>) outs(%acc : tensor<16x16xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %ex = arith.extui %x : i8 to i32
    %ey = arith.extsi %y : i8 to i32
    %p = arith.muli %ex, %ey : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<16x16xi32>
  return %c : tensor<16x16xi32>
}

// -----

// A vector is a matrix of one column.
// CHECK-LABEL: func.func @unsigned_vector(
// CHECK: "tc.matmul"({{.*}}unsigned = array<i64: 0, 1>}
func.func @unsigned_vector(%a: tensor<16x16xi8>, %b: tensor<16xi8>) -> tensor<16xi32> {
  %acc = arith.constant dense<0> : tensor<16xi32>
  %c = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%a, %b : tensor<16x16xi8>, tensor<16xi8>) outs(%acc : tensor<16xi32>) {
  ^bb0(%x: i8, %y: i8, %o: i32):
    %ex = arith.extsi %x : i8 to i32
    %ey = arith.extui %y : i8 to i32
    %p = arith.muli %ex, %ey : i32
    %s = arith.addi %o, %p : i32
    linalg.yield %s : i32
  } -> tensor<16xi32>
  return %c : tensor<16xi32>
}
