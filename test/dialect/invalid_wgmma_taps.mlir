// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.wgmma_taps/operands
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/operands
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: expected as many tiles of A as of B and rows, at least one, all of A and all of B of one type, and a fragment of C with a result like it, got !tc.smem<array<i64: 136, 64>, f16, "K", "128B">, !tc.smem<array<i64: 136, 64>, f16, "K", "128B">, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">, array<i64: 0>, !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16"> and !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_taps/a
!a = !tc.smem<array<i64: 136, 32>, f16, "K", "64B">
!b = !tc.smem<array<i64: 32, 32>, f16, "K", "64B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/a
!a = !tc.smem<array<i64: 136, 32>, f16, "K", "NONE">
!b = !tc.smem<array<i64: 32, 32>, f16, "K", "64B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: expected tiles of A that are K-major in one column of a swizzle, got !tc.smem<array<i64: 136, 32>, f16, "K", "NONE">: the rows of several columns, or of an MN-major tile, are not all the same distance apart}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_taps/a
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/a
!a = !tc.smem<array<i64: 192, 64>, f16, "MN", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: expected tiles of A that are K-major in one column of a swizzle, got !tc.smem<array<i64: 192, 64>, f16, "MN", "128B">: the rows of several columns, or of an MN-major tile, are not all the same distance apart}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_taps/a
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/a
!a = !tc.smem<array<i64: 136, 128>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 128>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: expected tiles of A that are K-major in one column of a swizzle, got !tc.smem<array<i64: 136, 128>, f16, "K", "128B">: the rows of several columns, or of an MN-major tile, are not all the same distance apart}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_taps/shapes
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/shapes
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: expected A [rows, k], B [n, k] and C [m, n] with m a multiple of 64 (a warpgroup's rows), n a multiple of 8 in [8, 256], k of whole instructions of 16 elements (32 bytes), and m rows of A from each of [0, 9] on, got [136, 64], [32, 64] and [128, 32]}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 9>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_taps/shapes
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 8, 0>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/shapes
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 40, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: expected A [rows, k], B [n, k] and C [m, n] with m a multiple of 64 (a warpgroup's rows), n a multiple of 8 in [8, 256], k of whole instructions of 16 elements (32 bytes), and m rows of A from each of [0, 8] on, got [136, 64], [40, 64] and [128, 32]}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_taps/types
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/types
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, bf16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: expected f16, bf16, f32 (as tf32) or i8, not mixed, with an accumulator of f32, got f16 x bf16 -> f32}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_taps/major
!a = !tc.smem<array<i64: 136, 32>, f32, "K", "128B">
!b = !tc.smem<array<i64: 32, 32>, f32, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k8.tf32">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k8.tf32">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/major
!a = !tc.smem<array<i64: 136, 32>, f32, "K", "128B">
!b = !tc.smem<array<i64: 32, 32>, f32, "MN", "128B_ATOM_32B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k8.tf32">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k8.tf32">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: expected K-major tiles of B of f32, got MN: wgmma transposes elements of 16 bits only; store the operand with K innermost}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_taps/unsigned
!a = !tc.smem<array<i64: 136, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 32, 128>, i8, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, i32, "C", "mma.m16n8k32.b8">
!d = !tc.fragment<array<i64: 128, 32>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, unsigned = array<i64: 1, 0>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma_taps/unsigned
!a = !tc.smem<array<i64: 136, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b0: !b, %b1: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma_taps: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 1, 0> on f16: only integers come unsigned}}
  %d = "tc.wgmma_taps"(%a, %a, %b0, %b1, %c) {rows = array<i64: 0, 8>, unsigned = array<i64: 1, 0>, operandSegmentSizes = array<i32: 2, 2, 1>} : (!a, !a, !b, !b, !c) -> !d
  return
}

// -----

// legal: tc.store_fragment/walk
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %out: memref<2x5x6x32xf16>, %m: index, %n: index) {
  "tc.store_fragment"(%c, %out, %m, %n) {tails = "outer", walk = array<i64: 5, 7>,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!c, memref<2x5x6x32xf16>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment/walk
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %out: memref<2x5x6x32xf16>, %m: index, %n: index) {
  // expected-error @+1 {{tc.store_fragment: walk must be array<i64: y, x> of at least the tensor's [5, 6], rows and columns of a tensor of rank 4 at an index along the walk and one along the last dimension, got array<i64: 5, 5>, a tensor [2, 5, 6, 32] and 2 indices: two pixels would have one position}}
  "tc.store_fragment"(%c, %out, %m, %n) {tails = "outer", walk = array<i64: 5, 5>,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!c, memref<2x5x6x32xf16>, index, index) -> ()
  return
}

// -----

// legal: tc.store_fragment/walk
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %out: memref<2x5x6x32xf16>, %m: index, %n: index) {
  "tc.store_fragment"(%c, %out, %m, %n) {tails = "outer", walk = array<i64: 5, 6>,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!c, memref<2x5x6x32xf16>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment/walk
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%c: !c, %out: memref<60x32xf16>, %m: index, %n: index) {
  // expected-error @+1 {{tc.store_fragment: walk must be array<i64: y, x> of at least the tensor's [], rows and columns of a tensor of rank 4 at an index along the walk and one along the last dimension, got array<i64: 5, 7>, a tensor [60, 32] and 2 indices: two pixels would have one position}}
  "tc.store_fragment"(%c, %out, %m, %n) {tails = "outer", walk = array<i64: 5, 7>,
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!c, memref<60x32xf16>, index, index) -> ()
  return
}

// -----

// legal: tc.fragment_epilogue/walk
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
#pixel = affine_map<(n, p, q, k) -> (n, k)>
func.func @f(%c: !c, %scale: memref<2x32xf32>, %m: index, %n: index) {
  %d = "tc.fragment_epilogue"(%c, %m, %n) ({
  ^bb0(%sum: f32):
    %s = "tc.element"(%scale) {map = #pixel} : (memref<2x32xf32>) -> f32
    %scaled = arith.mulf %sum, %s : f32
    "tc.yield"(%scaled) : (f32) -> ()
  }) {tails = "outer", walk = array<i64: 5, 7>, operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}

// -----

// illegal: tc.fragment_epilogue/walk
!c = !tc.fragment<array<i64: 128, 32>, f32, "C", "mma.m16n8k16.f16">
#pixel = affine_map<(n, p, q, k) -> (n, k)>
func.func @f(%c: !c, %scale: memref<2x32xf32>, %m: index, %n: index) {
  // expected-error @+1 {{tc.fragment_epilogue: walk must be array<i64: y, x> of sizes of at least 1, beside an index along the walk and one of the column, got array<i64: 5> and 2 indices}}
  %d = "tc.fragment_epilogue"(%c, %m, %n) ({
  ^bb0(%sum: f32):
    %s = "tc.element"(%scale) {map = #pixel} : (memref<2x32xf32>) -> f32
    %scaled = arith.mulf %sum, %s : f32
    "tc.yield"(%scaled) : (f32) -> ()
  }) {tails = "outer", walk = array<i64: 5>, operandSegmentSizes = array<i32: 1, 2>} : (!c, index, index) -> !c
  return
}
