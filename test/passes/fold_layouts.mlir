// fold-layouts: what moves or widens elements goes into the contraction's maps and body.
// RUN: %tc-opt %s --split-input-file --fold-layouts | %filecheck %s
// RUN: %tc-opt %s --split-input-file --fold-layouts 2>&1 | %filecheck %s --check-prefix=REMARK

// A linear layer of three dimensions as torch-mlir writes it: the reshape, the transpose and the
// casts of operands are gone.
// CHECK: #[[X:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
// CHECK: #[[W:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-LABEL: func.func @linear(
// CHECK: %[[C:.*]] = linalg.generic {indexing_maps = [#[[X]], #[[W]], #{{.*}}]{{.*}}ins(%arg0, %arg1 : tensor<2x20x16xf16>, tensor<24x16xf16>)
// CHECK: -> tensor<2x20x24xf32>
// CHECK-NEXT: return %[[C]]
func.func @linear(%x: tensor<2x20x16xf16>, %w: tensor<24x16xf16>) -> tensor<2x20x24xf32> {
  %zero = arith.constant 0.0 : f32
  %x2 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x20x16xf16> into tensor<40x16xf16>
  %e = tensor.empty() : tensor<16x24xf16>
  %t = linalg.transpose ins(%w : tensor<24x16xf16>) outs(%e : tensor<16x24xf16>) permutation = [1, 0]
  %xw = arith.extf %x2 : tensor<40x16xf16> to tensor<40x16xf32>
  %te = tensor.empty() : tensor<16x24xf32>
  %tw = linalg.generic {indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (k, n)>], iterator_types = ["parallel", "parallel"]}
      ins(%t : tensor<16x24xf16>) outs(%te : tensor<16x24xf32>) {
  ^bb0(%a: f16, %o: f32):
    %u = arith.extf %a : f16 to f32
    linalg.yield %u : f32
  } -> tensor<16x24xf32>
  %ce = tensor.empty() : tensor<40x24xf32>
  %i = linalg.fill ins(%zero : f32) outs(%ce : tensor<40x24xf32>) -> tensor<40x24xf32>
  %c = linalg.matmul ins(%xw, %tw : tensor<40x16xf32>, tensor<16x24xf32>) outs(%i : tensor<40x24xf32>) -> tensor<40x24xf32>
  %y = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 20, 24] : tensor<40x24xf32> into tensor<2x20x24xf32>
  return %y : tensor<2x20x24xf32>
}

// -----

// Channels first: sums are made channels last, and a kernel repacks them; padding stays.
// CHECK: #[[X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 + d5, d3 + d6)>
// CHECK: #[[W:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d1, d4, d5, d6)>
// CHECK: #[[Y:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d2, d3, d1)>
// CHECK-LABEL: func.func @nchw(
// CHECK: %[[P:.*]] = tensor.pad %arg0 low[0, 0, 1, 1] high[0, 0, 1, 1]
// CHECK: linalg.generic {indexing_maps = [#[[X]], #[[W]], #[[Y]]]{{.*}}ins(%[[P]], %arg1 : {{.*}}outs(%{{.*}} : tensor<1x9x9x16xf32>)
// CHECK: %[[R:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x9x9x16xf16>)
// CHECK: arith.truncf
// CHECK: %[[O:.*]] = "tc.repack"(%[[R]]) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x9x9x16xf16>) -> tensor<1x16x9x9xf16>
// CHECK-NEXT: return %[[O]]
// REMARK: remark: the result is made with its dimensions in the order [0, 2, 3, 1]{{.*}}repacks it, 2592 bytes read and written
func.func @nchw(%x: tensor<1x8x9x9xf16>, %w: tensor<16x8x3x3xf16>) -> tensor<1x16x9x9xf16> {
  %zero = arith.constant 0.0 : f16
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<1x8x9x9xf16> to tensor<1x8x11x11xf16>
  %e = tensor.empty() : tensor<1x16x9x9xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<1x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%i : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %h = arith.truncf %y : tensor<1x16x9x9xf32> to tensor<1x16x9x9xf16>
  return %h : tensor<1x16x9x9xf16>
}

// -----

// Two layers: casts and transposes go into the products, relu between them does not.
// CHECK-LABEL: func.func @layers(
// CHECK: %[[C:.*]] = linalg.generic {{.*}}"reduction"]} ins(%arg0, %arg1 : tensor<40x16xf16>, tensor<24x16xf16>)
// CHECK: %[[H:.*]] = linalg.generic {{.*}}ins(%[[C]] : tensor<40x24xf32>) outs({{.*}}tensor<40x24xf16>)
// CHECK: arith.truncf
// CHECK: arith.maximumf
// CHECK: %[[Y:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[H]], %arg2 : tensor<40x24xf16>, tensor<32x24xf16>)
// CHECK-NOT: arith.maximumf
// CHECK: return %[[Y]]
func.func @layers(%x: tensor<40x16xf16>, %w: tensor<24x16xf16>, %v: tensor<32x24xf16>) -> tensor<40x32xf32> {
  %z = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<40x24xf16>
  %e1 = tensor.empty() : tensor<16x24xf16>
  %t1 = linalg.transpose ins(%w : tensor<24x16xf16>) outs(%e1 : tensor<16x24xf16>) permutation = [1, 0]
  %xf = arith.extf %x : tensor<40x16xf16> to tensor<40x16xf32>
  %wf = arith.extf %t1 : tensor<16x24xf16> to tensor<16x24xf32>
  %e2 = tensor.empty() : tensor<40x24xf32>
  %i1 = linalg.fill ins(%z : f32) outs(%e2 : tensor<40x24xf32>) -> tensor<40x24xf32>
  %c = linalg.matmul ins(%xf, %wf : tensor<40x16xf32>, tensor<16x24xf32>) outs(%i1 : tensor<40x24xf32>) -> tensor<40x24xf32>
  %r = arith.truncf %c : tensor<40x24xf32> to tensor<40x24xf16>
  %h = arith.maximumf %r, %zeros : tensor<40x24xf16>
  %e3 = tensor.empty() : tensor<24x32xf16>
  %t2 = linalg.transpose ins(%v : tensor<32x24xf16>) outs(%e3 : tensor<24x32xf16>) permutation = [1, 0]
  %hf = arith.extf %h : tensor<40x24xf16> to tensor<40x24xf32>
  %vf = arith.extf %t2 : tensor<24x32xf16> to tensor<24x32xf32>
  %e4 = tensor.empty() : tensor<40x32xf32>
  %i2 = linalg.fill ins(%z : f32) outs(%e4 : tensor<40x32xf32>) -> tensor<40x32xf32>
  %y = linalg.matmul ins(%hf, %vf : tensor<40x24xf32>, tensor<24x32xf32>) outs(%i2 : tensor<40x32xf32>) -> tensor<40x32xf32>
  return %y : tensor<40x32xf32>
}

// -----

// Two convolutions, channels first: channels last between them, padded as such; the result alone is
// repacked.
// CHECK-LABEL: func.func @convolutions(
// CHECK: %[[H:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x9x9x16xf16>)
// CHECK: tensor.pad %[[H]] low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK: %[[R:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<1x9x9x8xf16>)
// CHECK: "tc.repack"(%[[R]]) {permutation = array<i64: 0, 3, 1, 2>}
// CHECK-NOT: tc.repack
// REMARK: remark: the result is made with its dimensions in the order [0, 2, 3, 1]{{.*}}repacks it, 1296 bytes read and written
func.func @convolutions(%x: tensor<1x8x11x11xf16>, %w: tensor<16x8x3x3xf16>, %v: tensor<8x16x3x3xf16>) -> tensor<1x8x9x9xf16> {
  %zero = arith.constant 0.0 : f16
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x9x9xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%i : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %h = arith.truncf %y : tensor<1x16x9x9xf32> to tensor<1x16x9x9xf16>
  %p = tensor.pad %h low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<1x16x9x9xf16> to tensor<1x16x11x11xf16>
  %f = tensor.empty() : tensor<1x8x9x9xf32>
  %j = linalg.fill ins(%z : f32) outs(%f : tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xf32>
  %q = linalg.conv_2d_nchw_fchw ins(%p, %v : tensor<1x16x11x11xf16>, tensor<8x16x3x3xf16>) outs(%j : tensor<1x8x9x9xf32>) -> tensor<1x8x9x9xf32>
  %g = arith.truncf %q : tensor<1x8x9x9xf32> to tensor<1x8x9x9xf16>
  return %g : tensor<1x8x9x9xf16>
}

// -----

// The same between permutes: channels last throughout, nothing is repacked.
// CHECK-LABEL: func.func @permuted(
// CHECK: tensor.pad %arg0 low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK-NOT: tc.repack
// CHECK: return
func.func @permuted(%x: tensor<1x9x9x8xf16>, %w: tensor<16x8x3x3xf16>) -> tensor<1x9x9x16xf32> {
  %zero = arith.constant 0.0 : f16
  %z = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<1x8x9x9xf16>
  %t = linalg.transpose ins(%x : tensor<1x9x9x8xf16>) outs(%te : tensor<1x8x9x9xf16>) permutation = [0, 3, 1, 2]
  %p = tensor.pad %t low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f16
  } : tensor<1x8x9x9xf16> to tensor<1x8x11x11xf16>
  %e = tensor.empty() : tensor<1x16x9x9xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%p, %w : tensor<1x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%i : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %oe = tensor.empty() : tensor<1x9x9x16xf32>
  %o = linalg.transpose ins(%y : tensor<1x16x9x9xf32>) outs(%oe : tensor<1x9x9x16xf32>) permutation = [0, 2, 3, 1]
  return %o : tensor<1x9x9x16xf32>
}

// -----

// A transposed result is that of the product of the transposed operands.
// CHECK: #[[AT:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-LABEL: func.func @transposed(
// CHECK: linalg.generic {{.*}}ins(%arg0, %arg1 : {{.*}} outs(%{{.*}} : tensor<24x40xf32>)
// CHECK-NOT: linalg.transpose
// CHECK-NOT: tc.repack
// CHECK: return %{{.*}} : tensor<24x40xf32>
func.func @transposed(%a: tensor<40x16xf16>, %b: tensor<16x24xf16>) -> tensor<24x40xf32> {
  %zero = arith.constant dense<0.0> : tensor<40x24xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x24xf16>) outs(%zero : tensor<40x24xf32>) -> tensor<40x24xf32>
  %e = tensor.empty() : tensor<24x40xf32>
  %t = linalg.transpose ins(%c : tensor<40x24xf32>) outs(%e : tensor<24x40xf32>) permutation = [1, 0]
  return %t : tensor<24x40xf32>
}

// -----

// The product of a broadcast vector, summed: one contraction.
// CHECK-LABEL: func.func @summed(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]} ins(%arg0, %arg1 : tensor<40x16xf16>, tensor<16xf16>)
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: linalg.generic
func.func @summed(%a: tensor<40x16xf16>, %b: tensor<16xf16>) -> tensor<40xf32> {
  %zero = arith.constant dense<0.0> : tensor<40xf32>
  %e = tensor.empty() : tensor<40x16xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<40x16xf16>, tensor<16xf16>) outs(%e : tensor<40x16xf32>) {
  ^bb0(%x: f16, %y: f16, %o: f32):
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : f16 to f32
    %m = arith.mulf %u, %v : f32
    linalg.yield %m : f32
  } -> tensor<40x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<40x16xf32>) outs(%zero : tensor<40xf32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %x, %o : f32
    linalg.yield %t : f32
  } -> tensor<40xf32>
  return %s : tensor<40xf32>
}

// -----

// Not in f32, which a tensor core would cut to tf32.
// CHECK-LABEL: func.func @summed_f32(
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]}
// CHECK: arith.mulf
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]}
// CHECK-NOT: arith.mulf
// CHECK: return
func.func @summed_f32(%a: tensor<40x16xf32>, %b: tensor<16xf32>) -> tensor<40xf32> {
  %zero = arith.constant dense<0.0> : tensor<40xf32>
  %e = tensor.empty() : tensor<40x16xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m, k)>], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<40x16xf32>, tensor<16xf32>) outs(%e : tensor<40x16xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    linalg.yield %m : f32
  } -> tensor<40x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<40x16xf32>) outs(%zero : tensor<40xf32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.addf %x, %o : f32
    linalg.yield %t : f32
  } -> tensor<40xf32>
  return %s : tensor<40xf32>
}

// -----

// Plain operands and a plain result: nothing to fold.
// CHECK-LABEL: func.func @plain(
// CHECK: linalg.matmul ins(%arg0, %arg1
func.func @plain(%a: tensor<40x16xf16>, %b: tensor<16x24xf16>) -> tensor<40x24xf32> {
  %zero = arith.constant dense<0.0> : tensor<40x24xf32>
  %c = linalg.matmul ins(%a, %b : tensor<40x16xf16>, tensor<16x24xf16>) outs(%zero : tensor<40x24xf32>) -> tensor<40x24xf32>
  return %c : tensor<40x24xf32>
}

// -----

// Channels are padded before they are expanded to groups: the padding meets the convolution the other way round.
// CHECK-LABEL: func.func @expanded(
// CHECK: %[[X:.*]] = tensor.expand_shape %arg0 {{.*}} : tensor<1x32x9x9xf16> into tensor<1x2x16x9x9xf16>
// CHECK: %[[P:.*]] = tensor.pad %[[X]] low[0, 0, 0, 1, 1] high[0, 0, 0, 1, 1]
// CHECK: %[[C:.*]] = linalg.generic {{.*}} ins(%[[P]], %arg1 : {{.*}}) outs(%{{.*}} : tensor<1x9x9x2x16xf32>)
// CHECK: "tc.repack"(%[[C]]) {permutation = array<i64: 0, 3, 4, 1, 2>} : (tensor<1x9x9x2x16xf32>) -> tensor<1x2x16x9x9xf32>
func.func @expanded(%x: tensor<1x32x9x9xf16>, %w: tensor<2x16x16x3x3xf16>) -> tensor<1x2x16x9x9xf32> {
  %z = arith.constant dense<0.0> : tensor<1x2x16x9x9xf32>
  %zero = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %zero : f16
  } : tensor<1x32x9x9xf16> to tensor<1x32x11x11xf16>
  %e = tensor.expand_shape %p [[0], [1, 2], [3], [4]] output_shape [1, 2, 16, 11, 11] : tensor<1x32x11x11xf16> into tensor<1x2x16x11x11xf16>
  %y = linalg.conv_2d_ngchw_gfchw ins(%e, %w : tensor<1x2x16x11x11xf16>, tensor<2x16x16x3x3xf16>) outs(%z : tensor<1x2x16x9x9xf32>) -> tensor<1x2x16x9x9xf32>
  return %y : tensor<1x2x16x9x9xf32>
}

// -----

// Padded groups stay as they are: a depthwise convolution is for CUDA cores.
// CHECK-LABEL: func.func @depthwise(
// CHECK: linalg.depthwise_conv_2d_nchw_chw
func.func @depthwise(%x: tensor<1x16x9x9xf16>, %w: tensor<16x3x3xf16>) -> tensor<1x16x7x7xf32> {
  %z = arith.constant dense<0.0> : tensor<1x16x7x7xf32>
  %y = linalg.depthwise_conv_2d_nchw_chw ins(%x, %w : tensor<1x16x9x9xf16>, tensor<16x3x3xf16>) outs(%z : tensor<1x16x7x7xf32>) -> tensor<1x16x7x7xf32>
  return %y : tensor<1x16x7x7xf32>
}

// -----

// Part of a convolution, channels first: the sums are channels last, and what reads them turns them.
// CHECK-LABEL: func.func @part(
// CHECK: %[[C:.*]] = linalg.generic {{.*}}"reduction"]} {{.*}}outs(%{{.*}} : tensor<1x9x9x16xf32>)
// CHECK: %[[T:.*]] = linalg.generic {{.*}}ins(%[[C]] : tensor<1x9x9x16xf32>) outs(%{{.*}} : tensor<1x16x9x9xf32>)
// CHECK: %[[S:.*]] = tensor.extract_slice %[[T]][0, 4, 0, 0]
// CHECK: return %[[S]]
func.func @part(%x: tensor<1x8x11x11xf16>, %w: tensor<16x8x3x3xf16>) -> tensor<1x4x9x9xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x16x9x9xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<1x8x11x11xf16>, tensor<16x8x3x3xf16>) outs(%i : tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf32>
  %s = tensor.extract_slice %y[0, 4, 0, 0] [1, 4, 9, 9] [1, 1, 1, 1] : tensor<1x16x9x9xf32> to tensor<1x4x9x9xf32>
  return %s : tensor<1x4x9x9xf32>
}

// -----

// The moves of arguments stay, too, where a product has no form without: all batches share a factor, but the result has
// rows of that factor between batches and columns.
// CHECK-LABEL: func.func @shared(
// CHECK: %[[W:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<128x8xf16>) outs(%{{.*}} : tensor<2x128x8xf16>)
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[W]], %{{.*}} : tensor<2x128x8xf16>, tensor<2x8x16xf16>)
func.func @shared(%w: tensor<128x8xf16>, %x: tensor<2x16x8xf16>, %v: tensor<16x32xf16>) -> tensor<2x128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %we = tensor.empty() : tensor<2x128x8xf16>
  %wb = linalg.generic {indexing_maps = [affine_map<(b, m, k) -> (m, k)>, affine_map<(b, m, k) -> (b, m, k)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%w : tensor<128x8xf16>) outs(%we : tensor<2x128x8xf16>) {
  ^bb0(%a: f16, %o: f16):
    linalg.yield %a : f16
  } -> tensor<2x128x8xf16>
  %te = tensor.empty() : tensor<2x8x16xf16>
  %t = linalg.transpose ins(%x : tensor<2x16x8xf16>) outs(%te : tensor<2x8x16xf16>) permutation = [0, 2, 1]
  %e = tensor.empty() : tensor<2x128x16xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x128x16xf32>) -> tensor<2x128x16xf32>
  %c = linalg.batch_matmul ins(%wb, %t : tensor<2x128x8xf16>, tensor<2x8x16xf16>) outs(%i : tensor<2x128x16xf32>) -> tensor<2x128x16xf32>
  %he = tensor.empty() : tensor<2x128x16xf16>
  %h = arith.truncf %c : tensor<2x128x16xf32> to tensor<2x128x16xf16>
  %hc = tensor.collapse_shape %h [[0, 1], [2]] : tensor<2x128x16xf16> into tensor<256x16xf16>
  %ye = tensor.empty() : tensor<256x32xf32>
  %j = linalg.fill ins(%zero : f32) outs(%ye : tensor<256x32xf32>) -> tensor<256x32xf32>
  %y = linalg.matmul ins(%hc, %v : tensor<256x16xf16>, tensor<16x32xf16>) outs(%j : tensor<256x32xf32>) -> tensor<256x32xf32>
  %r = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 128, 32] : tensor<256x32xf32> into tensor<2x128x32xf32>
  return %r : tensor<2x128x32xf32>
}

// -----

// Zeros that two products share: a constant for each, which no launch stores.
// CHECK-LABEL: func.func @zeros(
// CHECK-NOT: linalg.fill
// CHECK: %[[A:.*]] = arith.constant dense<0.000000e+00> : tensor<2x16x24xf32>
// CHECK: linalg.generic {{.*}} outs(%[[A]] : tensor<2x16x24xf32>)
// CHECK: %[[B:.*]] = arith.constant dense<0.000000e+00> : tensor<2x16x24xf32>
// CHECK: linalg.generic {{.*}} outs(%[[B]] : tensor<2x16x24xf32>)
func.func @zeros(%x: tensor<2x16x32xf16>, %v: tensor<24x32xf16>, %w: tensor<24x32xf16>) -> (tensor<2x16x24xf16>, tensor<2x16x24xf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x24xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<32x24xf32>) -> tensor<32x24xf32>
  %i = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x16x32xf16> into tensor<32x32xf16>
  %h = tensor.empty() : tensor<32x24xf16>
  %vt = linalg.transpose ins(%v : tensor<24x32xf16>) outs(%h : tensor<32x24xf16>) permutation = [1, 0]
  %wt = linalg.transpose ins(%w : tensor<24x32xf16>) outs(%h : tensor<32x24xf16>) permutation = [1, 0]
  %a = linalg.matmul ins(%i, %vt : tensor<32x32xf16>, tensor<32x24xf16>) outs(%0 : tensor<32x24xf32>) -> tensor<32x24xf32>
  %b = linalg.matmul ins(%i, %wt : tensor<32x32xf16>, tensor<32x24xf16>) outs(%0 : tensor<32x24xf32>) -> tensor<32x24xf32>
  %c = arith.truncf %a : tensor<32x24xf32> to tensor<32x24xf16>
  %d = arith.truncf %b : tensor<32x24xf32> to tensor<32x24xf16>
  %y = tensor.expand_shape %c [[0, 1], [2]] output_shape [2, 16, 24] : tensor<32x24xf16> into tensor<2x16x24xf16>
  %z = tensor.expand_shape %d [[0, 1], [2]] output_shape [2, 16, 24] : tensor<32x24xf16> into tensor<2x16x24xf16>
  return %y, %z : tensor<2x16x24xf16>, tensor<2x16x24xf16>
}

// -----

// Zeros that are reshaped and transposed stay zeros.
// CHECK-LABEL: func.func @moved_zeros(
// CHECK-NOT: linalg.fill
// CHECK: arith.constant dense<0.000000e+00> : tensor<24x32xf32>
// CHECK: linalg.generic
// CHECK: %[[A:.*]] = arith.constant dense<0.000000e+00> : tensor<32x24xf32>
// CHECK: linalg.generic {{.*}} outs(%[[A]] : tensor<32x24xf32>)
func.func @moved_zeros(%x: tensor<32x40xf16>, %v: tensor<24x40xf16>, %w: tensor<40x24xf16>) -> (tensor<24x32xf32>, tensor<32x24xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24x32xf32>
  %0 = linalg.fill ins(%zero : f32) outs(%e : tensor<24x32xf32>) -> tensor<24x32xf32>
  %h = tensor.empty() : tensor<40x32xf16>
  %xt = linalg.transpose ins(%x : tensor<32x40xf16>) outs(%h : tensor<40x32xf16>) permutation = [1, 0]
  %a = linalg.matmul ins(%v, %xt : tensor<24x40xf16>, tensor<40x32xf16>) outs(%0 : tensor<24x32xf32>) -> tensor<24x32xf32>
  %f = tensor.empty() : tensor<32x24xf32>
  %1 = linalg.transpose ins(%0 : tensor<24x32xf32>) outs(%f : tensor<32x24xf32>) permutation = [1, 0]
  %b = linalg.matmul ins(%x, %w : tensor<32x40xf16>, tensor<40x24xf16>) outs(%1 : tensor<32x24xf32>) -> tensor<32x24xf32>
  return %a, %b : tensor<24x32xf32>, tensor<32x24xf32>
}
