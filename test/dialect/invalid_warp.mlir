// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.cp_async/tails
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "outer",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.cp_async/tails
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  // expected-error @+1 {{tc.cp_async: tails must be one of "", "outer", "inner", "outer inner", got "rows"}}
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "rows",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

// legal: tc.cp_async/rank
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<2x64x64xf16>, %t: !t, %i: index) {
  "tc.cp_async"(%x, %i, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 3, 1>}
      : (memref<2x64x64xf16>, index, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.cp_async/rank
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  // expected-error @+1 {{tc.cp_async: expected a tensor of rank 2, or 3 with a leading batch, and one index per dimension, got rank 2 and 1 indices}}
  "tc.cp_async"(%x, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 1, 1>} : (memref<64x64xf16>, index, !t) -> ()
  return
}

// -----

// legal: tc.cp_async/element
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.cp_async/element
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xbf16>, %t: !t, %i: index) {
  // expected-error @+1 {{tc.cp_async: tensor and tile must have the same element type, got bf16 and f16: cp.async moves bytes; convert before this kernel}}
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xbf16>, index, index, !t) -> ()
  return
}

// -----

// legal: tc.cp_async/width
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x36xf16>, %t: !t, %i: index) {
  "tc.cp_async"(%x, %i, %i, %t) {width = 8 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x36xf16>, index, index, !t) -> ()
  return
}

// -----

// illegal: tc.cp_async/width
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x36xf16>, %t: !t, %i: index) {
  // expected-error @+1 {{tc.cp_async: width must be one of (4, 8, 16) bytes and divide the rows of the tile (64 bytes) and of the tensor (72 bytes), got 16: a copy is aligned to its size at both ends}}
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x36xf16>, index, index, !t) -> ()
  return
}

// -----

// legal: tc.cp_async_wait/pending
func.func @f() {
  "tc.cp_async_wait"() {pending = 0 : i64} : () -> ()
  return
}

// -----

// illegal: tc.cp_async_wait/pending
func.func @f() {
  // expected-error @+1 {{tc.cp_async_wait: pending must be at least 0, got -1: it is the number of groups that may be incomplete}}
  "tc.cp_async_wait"() {pending = -1 : i64} : () -> ()
  return
}

// -----

// legal: tc.zero_fragment/operand
func.func @f() {
  %z = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: tc.zero_fragment/operand
func.func @f() {
  // expected-error @+1 {{tc.zero_fragment: the result must be a fragment of C, got one of A: only accumulators start from zero}}
  %z = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// legal: tc.load_fragment/operand
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%t: !t) {
  %v = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: tc.load_fragment/operand
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%t: !t) {
  // expected-error @+1 {{tc.load_fragment: the result must be a fragment of A or B, got one of C}}
  %v = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, f16, "C", "mma.m16n8k16.f16">
  return
}

// -----

// legal: tc.load_fragment/range
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%t: !t) {
  %v = "tc.load_fragment"(%t) {k = 16 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: tc.load_fragment/range
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%t: !t) {
  // expected-error @+1 {{tc.load_fragment: the fragment must have the 32 rows of the tile and columns inside its K = 32, got 32 rows and columns [32, 48)}}
  %v = "tc.load_fragment"(%t) {k = 32 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// legal: tc.load_fragment/element
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%t: !t) {
  %v = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: tc.load_fragment/element
!t = !tc.staged<array<i64: 32, 32>, bf16, "K", array<i64: 2, 4, 3>>
func.func @f(%t: !t) {
  // expected-error @+1 {{tc.load_fragment: tile and fragment must have the same element type, got bf16 and f16: ldmatrix moves bytes}}
  %v = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// legal: tc.load_fragment/via
!t = !tc.staged<array<i64: 32, 32>, f32, "MN", array<i64: 2, 5, 2>>
func.func @f(%t: !t) {
  %v = "tc.load_fragment"(%t) {k = 0 : i64, via = "loads"}
      : (!t) -> !tc.fragment<array<i64: 32, 8>, f32, "A", "mma.m16n8k8.tf32">
  return
}

// -----

// illegal: tc.load_fragment/via
!t = !tc.staged<array<i64: 32, 32>, f32, "MN", array<i64: 2, 5, 2>>
func.func @f(%t: !t) {
  // expected-error @+1 {{tc.load_fragment: via must be "loads" for A of mma.m16n8k8.tf32 from a MN-major tile of f32, got "ldmatrix.trans"}}
  %v = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix.trans"}
      : (!t) -> !tc.fragment<array<i64: 32, 8>, f32, "A", "mma.m16n8k8.tf32">
  return
}

// -----

// legal: tc.mma_sync/operands
!a = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 16, 16>, f16, "B", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// illegal: tc.mma_sync/operands
!a = !tc.fragment<array<i64: 16, 16>, f16, "B", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.mma_sync: expected fragments of A, B and C and a result like C, got !tc.fragment<array<i64: 16, 16>, f16, "B", "mma.m16n8k16.f16">, !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">, !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">, !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">}}
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// legal: tc.mma_sync/atom
!a = !tc.fragment<array<i64: 32, 8>, f16, "A", "mma.m16n8k8.f16">
!b = !tc.fragment<array<i64: 16, 8>, f16, "B", "mma.m16n8k8.f16">
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k8.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// illegal: tc.mma_sync/atom
!a = !tc.fragment<array<i64: 32, 8>, f16, "A", "mma.m16n8k8.f16">
!b = !tc.fragment<array<i64: 16, 16>, f16, "B", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.mma_sync: all fragments must be of one atom, got mma.m16n8k8.f16, mma.m16n8k16.f16, mma.m16n8k16.f16: another atom has its elements in other registers}}
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// legal: tc.mma_sync/shapes
!a = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 16, 16>, f16, "B", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// illegal: tc.mma_sync/shapes
!a = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 24, 16>, f16, "B", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.mma_sync: expected A [m, k], B [n, k] and C [m, n] with the atom's k = 16, got [32, 16], [24, 16] and [32, 16]}}
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// legal: tc.mma_sync/types
!a = !tc.fragment<array<i64: 32, 16>, bf16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 16, 16>, bf16, "B", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// illegal: tc.mma_sync/types
!a = !tc.fragment<array<i64: 32, 16>, bf16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 16, 16>, f16, "B", "mma.m16n8k16.f16">
!c = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.mma_sync: expected element types of mma.m16n8k16.f16 with an accumulator of f32, got bf16 x f16 -> f32: f16, bf16, f32 (as tf32) and i8 are not mixed, e4m3 and e5m2 are}}
  %d = "tc.mma_sync"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// legal: tc.mma_sync/unsigned
!a = !tc.fragment<array<i64: 32, 32>, i8, "A", "mma.m16n8k32.b8">
!b = !tc.fragment<array<i64: 16, 32>, i8, "B", "mma.m16n8k32.b8">
!c = !tc.fragment<array<i64: 32, 16>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.mma_sync"(%a, %b, %c) {unsigned = array<i64: 1, 0>} : (!a, !b, !c) -> !c
  return
}

// -----

// illegal: tc.mma_sync/unsigned
!a = !tc.fragment<array<i64: 32, 32>, i8, "A", "mma.m16n8k32.b8">
!b = !tc.fragment<array<i64: 16, 32>, i8, "B", "mma.m16n8k32.b8">
!c = !tc.fragment<array<i64: 32, 16>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.mma_sync: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 1> on i8: only integers come unsigned}}
  %d = "tc.mma_sync"(%a, %b, %c) {unsigned = array<i64: 1>} : (!a, !b, !c) -> !c
  return
}

// -----

// legal: tc.store_fragment/operand
!v = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%v: !v, %x: memref<64x64xf16>, %i: index) {
  "tc.store_fragment"(%v, %x, %i, %i) {tails = "", operandSegmentSizes = array<i32: 1, 1, 2>}
      : (!v, memref<64x64xf16>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment/operand
!v = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
func.func @f(%v: !v, %x: memref<64x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_fragment: expected a fragment of C, got one of A: operands are read from memory, not written}}
  "tc.store_fragment"(%v, %x, %i, %i) {tails = "", operandSegmentSizes = array<i32: 1, 1, 2>}
      : (!v, memref<64x64xf16>, index, index) -> ()
  return
}

// -----

// legal: tc.store_fragment/tails
!v = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%v: !v, %x: memref<64x64xf16>, %i: index) {
  "tc.store_fragment"(%v, %x, %i, %i) {tails = "outer inner",
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!v, memref<64x64xf16>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment/tails
!v = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%v: !v, %x: memref<64x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_fragment: tails must be one of "", "outer", "inner", "outer inner", got "inner outer"}}
  "tc.store_fragment"(%v, %x, %i, %i) {tails = "inner outer",
      operandSegmentSizes = array<i32: 1, 1, 2>} : (!v, memref<64x64xf16>, index, index) -> ()
  return
}

// -----

// legal: tc.store_fragment/rank
!v = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%v: !v, %x: memref<2x64x64xf16>, %i: index) {
  "tc.store_fragment"(%v, %x, %i, %i, %i) {tails = "", operandSegmentSizes = array<i32: 1, 1, 3>}
      : (!v, memref<2x64x64xf16>, index, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment/rank
!v = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%v: !v, %x: memref<2x64x64xf16>, %i: index) {
  // expected-error @+1 {{tc.store_fragment: expected a tensor of rank 2, or 3 with a leading batch, and one index per dimension, got rank 3 and 2 indices}}
  "tc.store_fragment"(%v, %x, %i, %i) {tails = "", operandSegmentSizes = array<i32: 1, 1, 2>}
      : (!v, memref<2x64x64xf16>, index, index) -> ()
  return
}

// -----

// legal: tc.store_fragment/element
!v = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%v: !v, %x: memref<64x64xbf16>, %i: index) {
  "tc.store_fragment"(%v, %x, %i, %i) {tails = "", operandSegmentSizes = array<i32: 1, 1, 2>}
      : (!v, memref<64x64xbf16>, index, index) -> ()
  return
}

// -----

// illegal: tc.store_fragment/element
!v = !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%v: !v, %x: memref<64x64xi32>, %i: index) {
  // expected-error @+1 {{tc.store_fragment: an accumulator of f32 is stored as f32 or f16 or bf16, got a tensor of i32}}
  "tc.store_fragment"(%v, %x, %i, %i) {tails = "", operandSegmentSizes = array<i32: 1, 1, 2>}
      : (!v, memref<64x64xi32>, index, index) -> ()
  return
}

// -----

// legal: !tc.staged/parameters
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%t: !t) {
  %v = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: !tc.staged/parameters
!t = !tc.staged<array<i64: 32, 32>, f16, "M", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  // expected-error @+1 {{!tc.staged: expected !tc.staged<array<i64: mn, k>, element, major, array<i64: bits, base, shift>> with major "K" or "MN", got !tc.staged<array<i64: 32, 32>, f16, "M", array<i64: 2, 4, 3>>}}
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

// legal: !tc.staged/element
!t = !tc.staged<array<i64: 32, 32>, bf16, "K", array<i64: 2, 4, 3>>
func.func @f(%t: !t) {
  %v = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, bf16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: !tc.staged/element
!t = !tc.staged<array<i64: 32, 32>, f64, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xf64>, %t: !t, %i: index) {
  // expected-error @+1 {{!tc.staged: element must be one of f16, bf16, f32, f8E4M3FN, f8E5M2, i8, got f64: mma.sync multiplies these here}}
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf64>, index, index, !t) -> ()
  return
}

// -----

// legal: !tc.staged/rows
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

// illegal: !tc.staged/rows
!t = !tc.staged<array<i64: 24, 32>, f16, "K", array<i64: 2, 4, 3>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  // expected-error @+1 {{!tc.staged: rows must be a power of two of at least 16 bytes, and so must their number, got 24 rows of 64 bytes: ldmatrix reads rows of 16 bytes, and lane addresses are XORs of their bits}}
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

// legal: !tc.staged/swizzle
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 0, 0, 0>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

// illegal: !tc.staged/swizzle
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 2, 3, 3>>
func.func @f(%x: memref<64x64xf16>, %t: !t, %i: index) {
  // expected-error @+1 {{!tc.staged: a swizzle must leave pieces of 16 bytes whole and stay inside the tile of 2048 bytes, got bits 2, base 3, shift 3}}
  "tc.cp_async"(%x, %i, %i, %t) {width = 16 : i64, tails = "",
      operandSegmentSizes = array<i32: 1, 2, 1>} : (memref<64x64xf16>, index, index, !t) -> ()
  return
}

// -----

// legal: !tc.fragment/parameters
func.func @f() {
  %z = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: !tc.fragment/parameters
func.func @f() {
  // expected-error @+1 {{!tc.fragment: expected !tc.fragment<array<i64: rows, columns>, element, operand, atom> with operand "A", "B" or "C" and an atom of a whole warp (mma.m16n8k4.tf32, mma.m16n8k8.tf32, mma.m16n8k8.f16, mma.m16n8k16.f16, mma.m16n8k32.b8), got !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m8n8k4.f32.tn">}}
  %z = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m8n8k4.f32.tn">
  return
}

// -----

// legal: !tc.fragment/shape
func.func @f() {
  %z = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 32, 16>, f32, "C", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: !tc.fragment/shape
func.func @f() {
  // expected-error @+1 {{!tc.fragment: a fragment of C of mma.m16n8k16.f16 must be whole atoms of [16, 8], got [32, 12]}}
  %z = "tc.zero_fragment"() : () -> !tc.fragment<array<i64: 32, 12>, f32, "C", "mma.m16n8k16.f16">
  return
}

// -----

// legal: tc.load_fragment/tile
!t = !tc.smem<array<i64: 32, 32>, f16, "K", "64B">
func.func @f(%t: !t) {
  %a = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}

// -----

// illegal: tc.load_fragment/tile
!t = !tc.tmem<array<i64: 128, 32>, f16>
func.func @f(%t: !t) {
  // expected-error @+1 {{tc.load_fragment: the tile must be of type !tc.staged or !tc.smem, got !tc.tmem<array<i64: 128, 32>, f16>}}
  %a = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"}
      : (!t) -> !tc.fragment<array<i64: 128, 16>, f16, "A", "mma.m16n8k16.f16">
  return
}
