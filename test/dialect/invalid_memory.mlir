// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc/operand-sizes
func.func @f() {
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>}
      : () -> !tc.tmem<array<i64: 128, 64>, f16>
  return
}

// -----

// illegal: tc/operand-sizes
func.func @f() {
  // expected-error @+1 {{tc: tc.tmem_tile needs operandSegmentSizes = array<i32: ...>, one size for each of base, for 0 operands in all, got none}}
  %t = "tc.tmem_tile"() : () -> !tc.tmem<array<i64: 128, 64>, f16>
  return
}

// -----

// legal: tc.smem_tile/result
func.func @f() {
  %t = "tc.smem_tile"() : () -> !tc.ring<2 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  return
}

// -----

// illegal: tc.smem_tile/result
func.func @f() {
  // expected-error @+1 {{tc.smem_tile: the result must be !tc.smem, !tc.staged or a !tc.ring of one, got !tc.mbarrier}}
  %t = "tc.smem_tile"() : () -> !tc.mbarrier
  return
}

// -----

// legal: tc.smem_tile/offset-alignment
func.func @f() {
  %t = "tc.smem_tile"() {offset = 1024 : i64}
      : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  return
}

// -----

// illegal: tc.smem_tile/offset-alignment
func.func @f() {
  // expected-error @+1 {{tc.smem_tile: offset must be an integer multiple of 1024, got 512 : i64: the swizzle acts on absolute address bits, and its pattern repeats every 1024 bytes}}
  %t = "tc.smem_tile"() {offset = 512 : i64} : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  return
}

// -----

// legal: tc.smem_tile/offset-range
func.func @f() {
  %t = "tc.smem_tile"() {offset = 3072 : i64}
      : () -> !tc.ring<14 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  return
}

// -----

// illegal: tc.smem_tile/offset-range
func.func @f() {
  // expected-error @+1 {{tc.smem_tile: the tile must lie in [0, 232448) of shared memory, got bytes [4096, 233472): a CTA has at most 227 KB; use fewer stages or smaller tiles}}
  %t = "tc.smem_tile"() {offset = 4096 : i64}
      : () -> !tc.ring<14 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  return
}

// -----

// legal: tc.tmem_tile/result
func.func @f() {
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>}
      : () -> !tc.ring<2 : i64, !tc.tmem<array<i64: 128, 64>, f16>>
  return
}

// -----

// illegal: tc.tmem_tile/result
func.func @f() {
  // expected-error @+1 {{tc.tmem_tile: the result must be !tc.tmem or a !tc.ring of it, got !tc.smem<array<i64: 128, 64>, f16, "K", "128B">}}
  %t = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>}
      : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  return
}

// -----

// legal: tc.tmem_tile/place
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  %t = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}

// -----

// illegal: tc.tmem_tile/place
func.func @f() {
  // expected-error @+1 {{tc.tmem_tile: expected both an allocation (operand base) and an integer attribute column, or neither, got no base and column = 0 : i64}}
  %t = "tc.tmem_tile"() {column = 0 : i64, operandSegmentSizes = array<i32: 0>}
      : () -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}

// -----

// legal: tc.tmem_tile/base
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  %t = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}

// -----

// illegal: tc.tmem_tile/base
func.func @f(%base: !tc.tmem_base) {
  // expected-error @+1 {{tc.tmem_tile: base must be the result of a tc.tmem_alloc of the same function, got BlockArgument(<block argument> of type '!tc.tmem_base' at index: 0)}}
  %t = "tc.tmem_tile"(%base) {column = 0 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}

// -----

// legal: tc.tmem_tile/columns
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  %t = "tc.tmem_tile"(%base) {column = 64 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}

// -----

// illegal: tc.tmem_tile/columns
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  // expected-error @+1 {{tc.tmem_tile: the tile must lie within its allocation of 128 columns, got columns [65, 129); allocate more or use fewer slots}}
  %t = "tc.tmem_tile"(%base) {column = 65 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !tc.tmem<array<i64: 128, 64>, f32>
  return
}

// -----

// legal: tc.tmem_alloc/columns
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 512 : i64} : () -> !tc.tmem_base
  return
}

// -----

// illegal: tc.tmem_alloc/columns
func.func @f() {
  // expected-error @+1 {{tc.tmem_alloc: columns must be one of 32, 64, 128, 256, 512, got 96: tcgen05.alloc takes powers of two; nearest legal: 64 or 128}}
  %base = "tc.tmem_alloc"() {columns = 96 : i64} : () -> !tc.tmem_base
  return
}

// -----

// legal: tc.tmem_alloc/address-slot
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 32 : i64, address_slot = 232444 : i64} : () -> !tc.tmem_base
  return
}

// -----

// illegal: tc.tmem_alloc/address-slot
func.func @f() {
  // expected-error @+1 {{tc.tmem_alloc: address_slot must be a multiple of 4 in [0, 232448), got 232446 : i64: the address is written to that word of shared memory}}
  %base = "tc.tmem_alloc"() {columns = 32 : i64, address_slot = 232446 : i64} : () -> !tc.tmem_base
  return
}

// -----

// legal: tc.tmem_alloc/warp
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 32 : i64, warp = 31 : i64} : () -> !tc.tmem_base
  return
}

// -----

// illegal: tc.tmem_alloc/warp
func.func @f() {
  // expected-error @+1 {{tc.tmem_alloc: warp must be an integer in [0, 31], got 32 : i64: one whole warp of the CTA allocates}}
  %base = "tc.tmem_alloc"() {columns = 32 : i64, warp = 32 : i64} : () -> !tc.tmem_base
  return
}

// -----

// legal: tc.tmem_dealloc/base
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.tmem_dealloc/base
func.func @f(%base: !tc.tmem_base) {
  // expected-error @+1 {{tc.tmem_dealloc: base must be the result of a tc.tmem_alloc of the same function, got BlockArgument(<block argument> of type '!tc.tmem_base' at index: 0)}}
  "tc.tmem_dealloc"(%base) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.tmem_dealloc/columns
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.tmem_dealloc/columns
func.func @f() {
  %base = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  // expected-error @+1 {{tc.tmem_dealloc: columns must equal those of the allocation (64), got 32: an allocation is freed whole}}
  "tc.tmem_dealloc"(%base) {columns = 32 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.mbarrier_init/result
func.func @f() {
  %bar = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.ring<4 : i64, !tc.mbarrier>
  return
}

// -----

// illegal: tc.mbarrier_init/result
func.func @f() {
  // expected-error @+1 {{tc.mbarrier_init: the result must be !tc.mbarrier or a !tc.ring of it, got !tc.tensor_map}}
  %bar = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.tensor_map
  return
}

// -----

// legal: tc.mbarrier_init/arrivals
func.func @f() {
  %bar = "tc.mbarrier_init"() {arrivals = 1048575 : i64} : () -> !tc.mbarrier
  return
}

// -----

// illegal: tc.mbarrier_init/arrivals
func.func @f() {
  // expected-error @+1 {{tc.mbarrier_init: arrivals must be in [1, 1048575], got 0: the object counts them in 20 bits; nearest legal: 1}}
  %bar = "tc.mbarrier_init"() {arrivals = 0 : i64} : () -> !tc.mbarrier
  return
}

// -----

// legal: tc.mbarrier_init/offset
func.func @f() {
  %bar = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 232416 : i64}
      : () -> !tc.ring<4 : i64, !tc.mbarrier>
  return
}

// -----

// illegal: tc.mbarrier_init/offset
func.func @f() {
  // expected-error @+1 {{tc.mbarrier_init: offset must be an integer multiple of 8 with the barriers in [0, 232448) of shared memory, got 232424 : i64}}
  %bar = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 232424 : i64}
      : () -> !tc.ring<4 : i64, !tc.mbarrier>
  return
}

// -----

// legal: tc.slot/type
!ring = !tc.ring<4 : i64, !tc.mbarrier>
func.func @f(%ring: !ring) {
  %i = arith.constant 0 : index
  %bar = "tc.slot"(%ring, %i) : (!ring, index) -> !tc.mbarrier
  return
}

// -----

// illegal: tc.slot/type
!ring = !tc.ring<4 : i64, !tc.mbarrier>
func.func @f(%ring: !ring) {
  %i = arith.constant 0 : index
  // expected-error @+1 {{tc.slot: the result must be of the ring's slot type !tc.mbarrier, got !tc.tensor_map}}
  %bar = "tc.slot"(%ring, %i) : (!ring, index) -> !tc.tensor_map
  return
}

// -----

// legal: tc.slot/index
!ring = !tc.ring<4 : i64, !tc.mbarrier>
func.func @f(%ring: !ring) {
  %i = arith.constant 3 : index
  %bar = "tc.slot"(%ring, %i) : (!ring, index) -> !tc.mbarrier
  return
}

// -----

// illegal: tc.slot/index
!ring = !tc.ring<4 : i64, !tc.mbarrier>
func.func @f(%ring: !ring) {
  %i = arith.constant 4 : index
  // expected-error @+1 {{tc.slot: index must be in [0, 4), got 4: a slot is taken modulo nothing; take it modulo the count before}}
  %bar = "tc.slot"(%ring, %i) : (!ring, index) -> !tc.mbarrier
  return
}
