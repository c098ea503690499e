// RUN: %tc-opt %s --split-input-file --tile-conv-shift-reuse --verify-diagnostics
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{n-tile=20}" | %filecheck %s --check-prefix=N20
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{n-tile=300}" | %filecheck %s --check-prefix=N300
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{halo=repeat}" | %filecheck %s --check-prefix=HALO
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{tiling=spiral}" | %filecheck %s --check-prefix=TILING
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{halo=mask halo-load=w128}" | %filecheck %s --check-prefix=MASK
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{halo=refresh halo-load=w128}" | %filecheck %s --check-prefix=WROWS
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{halo=refresh halo-load=w128 tiling=linear}" | %filecheck %s --check-prefix=WLINEAR
// RUN: %exits 3 %tc-opt %S/Inputs/conv_far.mlir --tile-conv-shift-reuse="{halo=refresh halo-load=w128 tiling=packed}" | %filecheck %s --check-prefix=WFAR
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{shift-quarters=all}" | %filecheck %s --check-prefix=QMASK
// RUN: %exits 3 %tc-opt %S/Inputs/conv.mlir --tile-conv-shift-reuse="{halo=refresh shift-quarters=all}" | %filecheck %s --check-prefix=QASHIFT

// QMASK: error: expected shift-quarters=one with shift=ashift, got all: the option names the sub-partitions that tcgen05.shift moves, and has no effect on .ashift; leave shift-quarters out, or use halo=refresh with shift=shift
// QASHIFT: error: expected shift-quarters=one with shift=ashift, got all
// MASK: error: expected halo-load=boxes with halo=mask, got w128: with halo=mask no halo is loaded; leave halo-load out, or use halo=refresh
// WROWS: error: expected tiling=packed with halo-load=w128, got rows: im2col::w::128 traverses 128 pixels of one input row of all images, so sub-partitions must be consecutive; with tiling=rows they are blocks of arbitrary output rows, {{.*}} (PTX ISA 5.5.5); use tiling=packed, or halo-load=boxes
// WLINEAR: expected tiling=packed with halo-load=w128, got linear: {{.*}}, and with tiling=linear they continue from one input row to the next
// WFAR: lanes must be in [1, 8] input columns apart with halo-load=w128, got 36, the least common multiple of stride 4 and dilation 9 along the width{{.*}}; use pipeline conv-implicit-gemm
// N20: 2:8: error: expected n-tile to be a multiple of 16 in [16, 256], got 20 (N of tcgen05.mma.kind::f16 with M = 128, PTX ISA 9.7.16.2, table 39); take 16 or 32
// N300: 2:8: error: expected n-tile to be a multiple of 16 in [16, 256], got 300
// HALO: 2:8: error: halo must be mask or refresh, got repeat (this version has no other)
// TILING: 2:8: error: tiling must be rows or linear or packed, got spiral (this version has no other)

func.func @strided(%x: tensor<1x9x21x8xf16>, %w: tensor<3x3x8x8xf16>) -> tensor<1x7x3x8xf32> {
  // expected-error @+1 {{lanes must be at most 8 input columns apart with tiling=rows, got 9, the least common multiple of stride 1 and dilation 9 along the width}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 9>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x9x21x8xf16>, tensor<3x3x8x8xf16>) -> tensor<1x7x3x8xf32>
  return %y : tensor<1x7x3x8xf32>
}

// -----

func.func @wide(%x: tensor<1x1x40x8xf16>, %w: tensor<1x33x8x8xf16>) -> tensor<1x1x8x8xf32> {
  // expected-error @+1 {{expected a filter at most 32 wide, got S=33}}
  %y = "tc.conv2d"(%x, %w) {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, filter = "hwcf"} : (tensor<1x1x40x8xf16>, tensor<1x33x8x8xf16>) -> tensor<1x1x8x8xf32>
  return %y : tensor<1x1x8x8xf32>
}

// -----

func.func @product(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>) -> tensor<8x8xf32> {
  // expected-error @+1 {{tile-conv-shift-reuse expected a function of one tc.conv2d and func.return, got tc.matmul, func.return}}
  %y = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
