// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: !tc.smem/parameters
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 8, 1>, f16, "K", "128B">
  return
}

// -----

// illegal: !tc.smem/parameters
func.func @f() {
  // expected-error @+1 {{!tc.smem: expected !tc.smem<array<i64: mn, k>, element, major, swizzle> with mn, k >= 1, got !tc.smem<array<i64: 0, 64>, f16, "K", "128B">}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 0, 64>, f16, "K", "128B">
  return
}

// -----

// legal: !tc.smem/element
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, bf16, "K", "128B">
  return
}

// -----

// illegal: !tc.smem/element
func.func @f() {
  // expected-error @+1 {{!tc.smem: element must be one of f16, bf16, f32, f8E4M3FN, f8E5M2, i8, i32, got f64: tcgen05.mma kinds f16 and tf32 read these, the block-scaled kinds read bytes, and i32 is a result that TMA stores}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f64, "K", "128B">
  return
}

// -----

// legal: !tc.smem/major
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "MN", "128B">
  return
}

// -----

// illegal: !tc.smem/major
func.func @f() {
  // expected-error @+1 {{!tc.smem: major must be "K" or "MN" (which coordinate is contiguous), got "N"}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "N", "128B">
  return
}

// -----

// legal: !tc.smem/swizzle
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "32B">
  return
}

// -----

// illegal: !tc.smem/swizzle
func.func @f() {
  // expected-error @+1 {{!tc.smem: swizzle must be one of "NONE", "32B", "64B", "128B", "128B_ATOM_32B", got "96B": tiles are stacks of swizzled rows}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "96B">
  return
}

// -----

// legal: !tc.smem/swizzle-major
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f32, "K", "128B">
  return
}

// -----

// illegal: !tc.smem/swizzle-major
func.func @f() {
  // expected-error @+1 {{!tc.smem: K-major f32 cannot have swizzle "128B_ATOM_32B", but NONE, 32B, 64B, 128B: the tensor core reads MN-major 32-bit elements through the 128-byte swizzle with 32-byte atoms and nothing else through it, and tiles without a swizzle are K-major here}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f32, "K", "128B_ATOM_32B">
  return
}

// -----

// legal: !tc.smem/swizzle-major
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f32, "MN", "128B_ATOM_32B">
  return
}

// -----

// illegal: !tc.smem/swizzle-major
func.func @f() {
  // expected-error @+1 {{!tc.smem: MN-major f32 cannot have swizzle "128B", but 128B_ATOM_32B: the tensor core reads MN-major 32-bit elements through the 128-byte swizzle with 32-byte atoms and nothing else through it, and tiles without a swizzle are K-major here}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, f32, "MN", "128B">
  return
}

// -----

// legal: !tc.smem/swizzle-major
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, bf16, "MN", "128B">
  return
}

// -----

// illegal: !tc.smem/swizzle-major
func.func @f() {
  // expected-error @+1 {{!tc.smem: MN-major bf16 cannot have swizzle "128B_ATOM_32B", but 32B, 64B, 128B: the tensor core reads MN-major 32-bit elements through the 128-byte swizzle with 32-byte atoms and nothing else through it, and tiles without a swizzle are K-major here}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, bf16, "MN", "128B_ATOM_32B">
  return
}

// -----

// legal: !tc.smem/swizzle-major
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, i8, "K", "NONE">
  return
}

// -----

// illegal: !tc.smem/swizzle-major
func.func @f() {
  // expected-error @+1 {{!tc.smem: MN-major i8 cannot have swizzle "NONE", but 32B, 64B, 128B: the tensor core reads MN-major 32-bit elements through the 128-byte swizzle with 32-byte atoms and nothing else through it, and tiles without a swizzle are K-major here}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 128, 64>, i8, "MN", "NONE">
  return
}

// -----

// legal: !tc.smem/atom
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
  return
}

// -----

// illegal: !tc.smem/atom
func.func @f() {
  // expected-error @+1 {{!tc.smem: mn of a K-major tile must be a multiple of 8, got 20: a swizzle atom is 8 rows; nearest legal: 16 or 24}}
  %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 20, 64>, f16, "K", "128B">
  return
}

// -----

// legal: !tc.tmem/parameters
func.func @f() {
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 2>, f16>
  return
}

// -----

// illegal: !tc.tmem/parameters
func.func @f() {
  // expected-error @+1 {{!tc.tmem: expected !tc.tmem<array<i64: lanes, elements>, element> with positive extents, got !tc.tmem<array<i64: 128, 2, 2>, f16>}}
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 2, 2>, f16>
  return
}

// -----

// legal: !tc.tmem/lanes
func.func @f() {
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 64>, f16>
  return
}

// -----

// illegal: !tc.tmem/lanes
func.func @f() {
  // expected-error @+1 {{!tc.tmem: a tile has 128 lanes, got 64: columns are allocated whole, and M = 128 of cta_group::1 fills all lanes}}
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 64, 64>, f16>
  return
}

// -----

// legal: !tc.tmem/element
func.func @f() {
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 64>, bf16>
  return
}

// -----

// illegal: !tc.tmem/element
func.func @f() {
  // expected-error @+1 {{!tc.tmem: element must be one of f16, bf16, f32, f8E4M3FN, f8E5M2, i8, i32, got f64: f32 accumulators, f16/bf16 operands packed two per column, or scale factors, four bytes per column}}
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 64>, f64>
  return
}

// -----

// legal: !tc.tmem/whole-columns
func.func @f() {
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 16>, f16>
  return
}

// -----

// illegal: !tc.tmem/whole-columns
func.func @f() {
  // expected-error @+1 {{!tc.tmem: f16 elements per lane must be a multiple of 2, got 17: a column holds 2; nearest legal: 16 or 18}}
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 17>, f16>
  return
}

// -----

// legal: !tc.tmem/columns
func.func @f() {
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 512>, f32>
  return
}

// -----

// illegal: !tc.tmem/columns
func.func @f() {
  // expected-error @+1 {{!tc.tmem: a tile has at most 512 columns, got 513: that is all of tensor memory}}
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !tc.tmem<array<i64: 128, 513>, f32>
  return
}

// -----

// legal: !tc.ring/parameters
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.ring<1 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  return
}

// -----

// illegal: !tc.ring/parameters
func.func @f() {
  // expected-error @+1 {{!tc.ring: expected !tc.ring<count : i64, !tc.smem | !tc.staged | !tc.tmem | !tc.mbarrier> with count >= 1, got !tc.ring<0 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>}}
  %t = "tc.smem_tile"() : () -> !tc.ring<0 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  return
}
