// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.kernel/grid
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 2147483647, 65535, 65535>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  return
}

// -----

// illegal: tc.kernel/grid
// expected-error @+1 {{tc.kernel: tc.grid must be array<i64: x, y, z> with 1 <= extents <= (2147483647, 65535, 65535), got array<i64: 1, 65536, 1>}}
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 65536, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  return
}

// -----

// legal: tc.kernel/block
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 1024, 1, 1>,
        tc.target = "sm_100a"} {
  return
}

// -----

// illegal: tc.kernel/block
// expected-error @+1 {{tc.kernel: tc.block must be array<i64: x, y, z> of whole warps, at most 1024 threads, got array<i64: 200, 1, 1>}}
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 200, 1, 1>,
        tc.target = "sm_100a"} {
  return
}

// -----

// legal: tc.kernel/cluster
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 4, 1>, tc.cluster = array<i64: 2, 4, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  return
}

// -----

// illegal: tc.kernel/cluster
// expected-error @+1 {{tc.kernel: tc.cluster must be array<i64: x, y, z> of at most 8 CTAs, whose extents divide those of tc.grid, [27, 1, 1], got array<i64: 2, 1, 1>}}
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 27, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  return
}

// -----

// illegal: tc.kernel/cluster
// expected-error @+1 {{tc.kernel: tc.cluster must be array<i64: x, y, z> of at most 8 CTAs, whose extents divide those of tc.grid, [32, 1, 1], got array<i64: 16, 1, 1>}}
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 32, 1, 1>, tc.cluster = array<i64: 16, 1, 1>,
        tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  return
}

// -----

// legal: tc.kernel/target
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  return
}

// -----

// illegal: tc.kernel/target
// expected-error @+1 {{tc.kernel: tc.target must be "sm_100a", got "sm_100": tcgen05 needs an architecture-specific target}}
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100"} {
  return
}

// -----

// legal: tc.kernel/signature
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  return
}

// -----

// illegal: tc.kernel/signature
// expected-error @+1 {{tc.kernel: a kernel takes memrefs and returns nothing, got (tensor<4xf16>) -> (); write results to an argument}}
func.func @f(%x: tensor<4xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  return
}

// -----

// legal: tc.kernel/tmem-budget
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 256 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 256 : i64} : (!tc.tmem_base) -> ()
  %base1 = "tc.tmem_alloc"() {columns = 256 : i64} : () -> !tc.tmem_base
  %base2 = "tc.tmem_alloc"() {columns = 256 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base1) {columns = 256 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%base2) {columns = 256 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/tmem-budget
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 512 : i64} : () -> !tc.tmem_base
  // expected-error @+1 {{tc.kernel: the kernel needs 544 columns of tensor memory at once (512 + 32), at most 512: use a smaller N tile or fewer stages}}
  %base1 = "tc.tmem_alloc"() {columns = 32 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 512 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%base1) {columns = 32 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/tmem-budget
!t = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %t0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>}
      : () -> !tc.tmem<array<i64: 128, 256>, f32>
  %t1 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t
  %t2 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t
  %t3 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>}
      : () -> !tc.tmem<array<i64: 128, 192>, f32>
  return
}

// -----

// illegal: tc.kernel/tmem-budget
!t = !tc.tmem<array<i64: 128, 256>, f32>
!t_ = !tc.tmem<array<i64: 128, 32>, f32>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %t0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t
  %t1 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t_
  %t2 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t_
  // expected-error @+1 {{tc.kernel: the kernel needs 576 columns of tensor memory at once (256 + 32 + 32 + 256), at most 512: use a smaller N tile or fewer stages}}
  %t3 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t
  return
}

// -----

// legal: tc.kernel/tmem-growth
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  %base1 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 128 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%base1) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/tmem-growth
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  // expected-error @+1 {{tc.kernel: an allocation must not be larger than an earlier one of the CTA (64 columns), got 128; allocate the largest first}}
  %base1 = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%base1) {columns = 128 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/tmem-relinquished
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_relinquish"() : () -> ()
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/tmem-relinquished
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_relinquish"() : () -> ()
  // expected-error @+1 {{tc.kernel: no allocation may follow tc.tmem_relinquish, got one of 64 columns: the CTA gave the right up}}
  %base1 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%base1) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/tmem-leak
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/tmem-leak
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  // expected-error @+1 {{tc.kernel: the allocation of 64 columns has no tc.tmem_dealloc: the next CTA on the SM would wait for ever}}
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  return
}

// -----

// legal: tc.kernel/tmem-double-free
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/tmem-double-free
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  // expected-error @+1 {{tc.kernel: the allocation of 64 columns is freed more than once}}
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/tmem-warp
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64, warp = 5 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64, warp = 5 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/tmem-warp
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64, warp = 5 : i64} : () -> !tc.tmem_base
  // expected-error @+1 {{tc.kernel: tensor memory must be allocated, freed and relinquished by one warp (5 : i64), got 4 : i64: two warps that allocate at once can block each other}}
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64, warp = 4 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/tmem-overlap
!t = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  %t0 = "tc.tmem_tile"(%base0) {column = 0 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !t
  %t1 = "tc.tmem_tile"(%base0) {column = 64 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !t
  "tc.tmem_dealloc"(%base0) {columns = 128 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// illegal: tc.kernel/tmem-overlap
!t = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  %t0 = "tc.tmem_tile"(%base0) {column = 0 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !t
  // expected-error @+1 {{tc.kernel: columns [63, 127) overlap another tile's [0, 64) of the same allocation}}
  %t1 = "tc.tmem_tile"(%base0) {column = 63 : i64, operandSegmentSizes = array<i32: 1>}
      : (!tc.tmem_base) -> !t
  "tc.tmem_dealloc"(%base0) {columns = 128 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// legal: tc.kernel/smem-budget
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %s0 = "tc.smem_tile"() : () -> !tc.ring<14 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  return
}

// -----

// illegal: tc.kernel/smem-budget
// expected-error @+1 {{tc.kernel: the kernel needs 233472 bytes of shared memory, a CTA has at most 232448 (227 KB): use fewer stages or smaller tiles}}
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %s0 = "tc.smem_tile"() : () -> !tc.ring<14 : i64, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">>
  %s1 = "tc.smem_tile"() : () -> !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
  return
}

// -----

// legal: tc.kernel/smem-bytes
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.smem_bytes = 17408 : i64} {
  %s0 = "tc.smem_tile"() {offset = 1024 : i64}
      : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  return
}

// -----

// illegal: tc.kernel/smem-bytes
// expected-error @+1 {{tc.kernel: tc.smem_bytes must be an integer that covers every planned object, in [17408, 232448], got 17407 : i64}}
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.smem_bytes = 17407 : i64} {
  %s0 = "tc.smem_tile"() {offset = 1024 : i64}
      : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  return
}

// -----

// legal: tc.kernel/smem-overlap
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.smem_bytes = 32768 : i64} {
  %s0 = "tc.smem_tile"() {offset = 0 : i64} : () -> !s
  %s1 = "tc.smem_tile"() {offset = 16384 : i64} : () -> !s
  return
}

// -----

// illegal: tc.kernel/smem-overlap
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.smem_bytes = 32768 : i64} {
  %s0 = "tc.smem_tile"() {offset = 0 : i64} : () -> !s
  // expected-error @+1 {{tc.kernel: bytes [15360, 31744) of shared memory overlap another object's [0, 16384)}}
  %s1 = "tc.smem_tile"() {offset = 15360 : i64} : () -> !s
  return
}

// -----

// legal: tc.kernel/planned
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.smem_bytes = 32768 : i64} {
  %s0 = "tc.smem_tile"() {offset = 0 : i64} : () -> !s
  %s1 = "tc.smem_tile"() {offset = 16384 : i64} : () -> !s
  return
}

// -----

// illegal: tc.kernel/planned
!s = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.smem_bytes = 32768 : i64} {
  %s0 = "tc.smem_tile"() {offset = 0 : i64} : () -> !s
  // expected-error @+1 {{tc.kernel: memory is planned for all of a kernel or for nothing: this op has no offset, others have a place}}
  %s1 = "tc.smem_tile"() : () -> !s
  return
}

// -----

// legal: tc.kernel/once
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    "tc.cta_barrier"() : () -> ()
  }
  return
}

// -----

// illegal: tc.kernel/once
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    // expected-error @+1 {{tc.kernel: tc.mbarrier_init must not stand in a loop or branch: barriers and tensor memory are set up once}}
    %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  }
  return
}

// -----

// legal: tc.kernel/roles-top-level
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/roles-top-level
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    // expected-error @+1 {{tc.kernel: roles must stand directly in the kernel, got one in a scf.for: each warp enters its role once}}
    "tc.role"() ({
    ^bb0(%w: index):
      "tc.fence"() {kind = "tcgen05.after"} : () -> ()
    }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  }
  return
}

// -----

// legal: tc.kernel/roles-disjoint
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/roles-disjoint
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  // expected-error @+1 {{tc.kernel: warp 4 already has a role (producer): roles run concurrently, and a warp runs one}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "mma", warps = array<i64: 4>, threads = "one"} : () -> ()
  return
}

// -----

// legal: tc.kernel/warp-in-block
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/warp-in-block
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  // expected-error @+1 {{tc.kernel: warp 6 does not exist: tc.block has 6 warps}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "mma", warps = array<i64: 6>, threads = "one"} : () -> ()
  return
}

// -----

// legal: tc.kernel/epilogue-quarters
!t0 = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 256, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %t0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t0
  "tc.role"() ({
  ^bb0(%w: index):
    %q = arith.constant 0 : index
    %v = "tc.tmem_ld"(%t0, %w, %q) : (!t0, index, index) -> vector<32x16xf32>
  }) {kind = "epilogue", warps = array<i64: 4, 5, 6, 7>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/epilogue-quarters
!t0 = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %t0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t0
  // expected-error @+1 {{tc.kernel: a role that reads or writes tensor memory needs whole warpgroups, warps 4n to 4n + 3 in a row, got [2, 3, 4, 5]: warp w reaches the lanes of quarter w mod 4 only}}
  "tc.role"() ({
  ^bb0(%w: index):
    %q = arith.constant 0 : index
    %v = "tc.tmem_ld"(%t0, %w, %q) : (!t0, index, index) -> vector<32x16xf32>
  }) {kind = "epilogue", warps = array<i64: 2, 3, 4, 5>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.kernel/epilogue-quarters
!t0 = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 256, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %t0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t0
  "tc.role"() ({
  ^bb0(%w: index):
    %q = arith.constant 0 : index
    %v = "tc.tmem_ld"(%t0, %w, %q) : (!t0, index, index) -> vector<32x16xf32>
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3, 4, 5, 6, 7>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/epilogue-quarters
!t0 = !tc.tmem<array<i64: 128, 64>, f32>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %t0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t0
  // expected-error @+1 {{tc.kernel: a role that reads or writes tensor memory needs whole warpgroups, warps 4n to 4n + 3 in a row, got [0, 1, 2, 3, 4, 5]: warp w reaches the lanes of quarter w mod 4 only}}
  "tc.role"() ({
  ^bb0(%w: index):
    %q = arith.constant 0 : index
    %v = "tc.tmem_ld"(%t0, %w, %q) : (!t0, index, index) -> vector<32x16xf32>
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3, 4, 5>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.kernel/roles-adjacent
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  "tc.cta_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.kernel/roles-adjacent
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  // expected-error @+1 {{tc.kernel: the roles of a kernel must follow each other, got tc.cta_barrier between them: they run concurrently}}
  "tc.cta_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  return
}

// -----

// legal: tc.kernel/in-role
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.commit"(%bar0) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/in-role
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  // expected-error @+1 {{tc.kernel: tc.commit must be inside a role: in a kernel with roles, ops outside are executed by the whole CTA}}
  "tc.commit"(%bar0) : (!tc.mbarrier) -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// legal: tc.kernel/sequential
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  return
}

// -----

// illegal: tc.kernel/sequential
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  // expected-error @+1 {{tc.kernel: tc.mbarrier_init has no meaning in a kernel without tc.async: there every op takes effect in program order}}
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  return
}

// -----

// legal: tc.kernel/sequential
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %s0 = "tc.smem_tile"() : () -> !s0
  %i = arith.constant 0 : index
  "tc.tma_load"(%map, %i, %i, %i, %i, %s0) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !s0) -> ()
  return
}

// -----

// illegal: tc.kernel/sequential
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %s0 = "tc.smem_tile"() : () -> !s0
  %i = arith.constant 0 : index
  %bar0 = builtin.unrealized_conversion_cast %i : index to !tc.mbarrier
  // expected-error @+1 {{tc.kernel: tc.tma_load with signal has no meaning in a kernel without tc.async: there every op takes effect in program order}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %s0, %bar0) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>}
      : (!tc.tensor_map, index, index, index, index, !s0, !tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.kernel/load-signal
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %s0 = "tc.smem_tile"() : () -> !s0
  %i = arith.constant 0 : index
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.mbarrier_expect_tx"(%bar0) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
  "tc.tma_load"(%map, %i, %i, %i, %i, %s0, %bar0) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>}
      : (!tc.tensor_map, index, index, index, index, !s0, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.kernel/load-signal
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %s0 = "tc.smem_tile"() : () -> !s0
  %i = arith.constant 0 : index
  // expected-error @+1 {{tc.kernel: a load in a tc.async kernel needs a signal: nothing else tells when its bytes are there}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %s0) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 0>}
      : (!tc.tensor_map, index, index, index, index, !s0) -> ()
  return
}

// -----

// legal: tc.kernel/commit
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t0 = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %s0 = "tc.smem_tile"() : () -> !s0
  %t0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t0
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.cp"(%s0, %t0) {slice = 0 : i64} : (!s0, !t0) -> ()
    "tc.commit"(%bar0) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/commit
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!t0 = !tc.tmem<array<i64: 128, 64>, f16>
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %s0 = "tc.smem_tile"() : () -> !s0
  %t0 = "tc.tmem_tile"() {operandSegmentSizes = array<i32: 0>} : () -> !t0
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.commit"(%bar0) : (!tc.mbarrier) -> ()
    // expected-error @+1 {{tc.kernel: no tc.commit follows this tc.cp in its role: nothing tells when it is complete}}
    "tc.cp"(%s0, %t0) {slice = 0 : i64} : (!s0, !t0) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// legal: tc.kernel/wait-arrival
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %i = arith.constant 0 : index
  "tc.commit"(%bar0) : (!tc.mbarrier) -> ()
  "tc.mbarrier_wait"(%bar0, %i) : (!tc.mbarrier, index) -> ()
  return
}

// -----

// illegal: tc.kernel/wait-arrival
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %i = arith.constant 0 : index
  // expected-error @+1 {{tc.kernel: nothing arrives on this barrier (no tc.commit, no tc.mbarrier_expect_tx, no tc.mbarrier_arrive): the wait never ends}}
  "tc.mbarrier_wait"(%bar0, %i) : (!tc.mbarrier, index) -> ()
  return
}

// -----

// legal: tc.kernel/expect-signal
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %s0 = "tc.smem_tile"() : () -> !s0
  %i = arith.constant 0 : index
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.mbarrier_expect_tx"(%bar0) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
  "tc.tma_load"(%map, %i, %i, %i, %i, %s0, %bar0) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>}
      : (!tc.tensor_map, index, index, index, index, !s0, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.kernel/expect-signal
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  // expected-error @+1 {{tc.kernel: no tc.tma_load and no tc.launch_request signals this barrier: the announced 4096 bytes never arrive}}
  "tc.mbarrier_expect_tx"(%bar0) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.kernel/signal-expect
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %s0 = "tc.smem_tile"() : () -> !s0
  %i = arith.constant 0 : index
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.mbarrier_expect_tx"(%bar0) {nbytes = 4096 : i64} : (!tc.mbarrier) -> ()
  "tc.tma_load"(%map, %i, %i, %i, %i, %s0, %bar0) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>}
      : (!tc.tensor_map, index, index, index, index, !s0, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.kernel/signal-expect
!s0 = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
func.func @f(%x: memref<1x56x56x64xf16>, %out: memref<3136x64xf32>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 64, 56, 56, 1>,
      strides = array<i64: 128, 7168, 401408>, box = array<i64: 64, 32, 1, 1>,
      element_strides = array<i64: 1, 1, 1, 1>, corners = array<i64>, swizzle = "128B"}
      : (memref<1x56x56x64xf16>) -> !tc.tensor_map
  %s0 = "tc.smem_tile"() : () -> !s0
  %i = arith.constant 0 : index
  %bar0 = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  // expected-error @+1 {{tc.kernel: no tc.mbarrier_expect_tx announces the bytes of this load on its barrier: its phase could complete without them}}
  "tc.tma_load"(%map, %i, %i, %i, %i, %s0, %bar0) {row = 0 : i64, nbytes = 4096 : i64,
      operandSegmentSizes = array<i32: 1, 4, 0, 1, 1>}
      : (!tc.tensor_map, index, index, index, index, !s0, !tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.kernel/warps
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 0, 0, 0>>
!z = !tc.fragment<array<i64: 32, 32>, f32, "C", "mma.m16n8k16.f16">
!a = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 32, 16>, f16, "B", "mma.m16n8k16.f16">
func.func @f(%x: memref<32x32xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 64, 1, 1>,
        tc.warps = array<i64: 1, 2>, tc.target = "sm_80"} {
  %t = "tc.smem_tile"() : () -> !t
  %z = "tc.zero_fragment"() : () -> !z
  %a = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !a
  %b = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !b
  %d = "tc.mma_sync"(%a, %b, %z) : (!a, !b, !z) -> !z
  return
}

// -----

// illegal: tc.kernel/warps
!t = !tc.staged<array<i64: 32, 32>, f16, "K", array<i64: 0, 0, 0>>
!z = !tc.fragment<array<i64: 32, 32>, f32, "C", "mma.m16n8k16.f16">
!a = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 32, 16>, f16, "B", "mma.m16n8k16.f16">
// expected-error @+1 {{tc.kernel: a kernel with fragments needs tc.warps = array<i64: m, n> with m * n the 2 warps of tc.block, or of the consumers, got array<i64: 2, 2>: it says which warp has which part of a fragment}}
func.func @f(%x: memref<32x32xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 64, 1, 1>,
        tc.warps = array<i64: 2, 2>, tc.target = "sm_80"} {
  %t = "tc.smem_tile"() : () -> !t
  %z = "tc.zero_fragment"() : () -> !z
  %a = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !a
  %b = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !b
  %d = "tc.mma_sync"(%a, %b, %z) : (!a, !b, !z) -> !z
  return
}

// -----

// legal: tc.kernel/warp-target
!t = !tc.staged<array<i64: 32, 32>, f8E4M3FN, "K", array<i64: 0, 0, 0>>
!z = !tc.fragment<array<i64: 32, 32>, f32, "C", "mma.m16n8k32.b8">
!a = !tc.fragment<array<i64: 32, 32>, f8E4M3FN, "A", "mma.m16n8k32.b8">
!b = !tc.fragment<array<i64: 32, 32>, f8E4M3FN, "B", "mma.m16n8k32.b8">
func.func @f(%x: memref<32x32xf8E4M3FN>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 64, 1, 1>,
        tc.warps = array<i64: 1, 2>, tc.target = "sm_90"} {
  %t = "tc.smem_tile"() : () -> !t
  %z = "tc.zero_fragment"() : () -> !z
  %a = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !a
  %b = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !b
  %d = "tc.mma_sync"(%a, %b, %z) : (!a, !b, !z) -> !z
  return
}

// -----

// illegal: tc.kernel/warp-target
!t = !tc.staged<array<i64: 32, 32>, f8E4M3FN, "K", array<i64: 0, 0, 0>>
!z = !tc.fragment<array<i64: 32, 32>, f32, "C", "mma.m16n8k32.b8">
!a = !tc.fragment<array<i64: 32, 32>, f8E4M3FN, "A", "mma.m16n8k32.b8">
!b = !tc.fragment<array<i64: 32, 32>, f8E4M3FN, "B", "mma.m16n8k32.b8">
func.func @f(%x: memref<32x32xf8E4M3FN>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 64, 1, 1>,
        tc.warps = array<i64: 1, 2>, tc.target = "sm_80"} {
  %t = "tc.smem_tile"() : () -> !t
  %z = "tc.zero_fragment"() : () -> !z
  %a = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !a
  %b = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !b
  // expected-error @+1 {{tc.kernel: tc.target must be one of sm_90, sm_90a, sm_100a for mma.sync of f8E4M3FN, got sm_80: cp.async needs sm_80, e4m3 and e5m2 need sm_89}}
  %d = "tc.mma_sync"(%a, %b, %z) : (!a, !b, !z) -> !z
  return
}

// -----

// legal: tc.kernel/one-thread
!t = !tc.smem<array<i64: 32, 32>, f16, "K", "64B">
!a = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 32, 16>, f16, "B", "mma.m16n8k16.f16">
!z = !tc.fragment<array<i64: 32, 32>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%x: memref<32x32xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 64, 1, 1>,
        tc.warps = array<i64: 1, 2>, tc.target = "sm_90", tc.async} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 32, 32>,
      strides = array<i64: 64>, box = array<i64: 32, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "64B"} : (memref<32x32xf16>) -> !tc.tensor_map
  %t = "tc.smem_tile"() : () -> !t
  %i = arith.constant 0 : index
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.one_thread"() ({
    "tc.mbarrier_expect_tx"(%full) {nbytes = 2048 : i64} : (!tc.mbarrier) -> ()
    "tc.tma_load"(%map, %i, %i, %t, %full) {row = 0 : i64, nbytes = 2048 : i64,
        operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>}
        : (!tc.tensor_map, index, index, !t, !tc.mbarrier) -> ()
  }) : () -> ()
  "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
  %a = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !a
  %b = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !b
  %z = "tc.zero_fragment"() : () -> !z
  %d = "tc.mma_sync"(%a, %b, %z) : (!a, !b, !z) -> !z
  return
}

// -----

// illegal: tc.kernel/one-thread
!t = !tc.smem<array<i64: 32, 32>, f16, "K", "64B">
!z = !tc.fragment<array<i64: 32, 32>, f32, "C", "mma.m16n8k16.f16">
!a = !tc.fragment<array<i64: 32, 16>, f16, "A", "mma.m16n8k16.f16">
!b = !tc.fragment<array<i64: 32, 16>, f16, "B", "mma.m16n8k16.f16">
func.func @f(%x: memref<32x32xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 64, 1, 1>,
        tc.warps = array<i64: 1, 2>, tc.target = "sm_90", tc.async} {
  %map = "tc.make_tensor_map"(%x) {mode = "tiled", dims = array<i64: 32, 32>,
      strides = array<i64: 64>, box = array<i64: 32, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "64B"} : (memref<32x32xf16>) -> !tc.tensor_map
  %t = "tc.smem_tile"() : () -> !t
  %i = arith.constant 0 : index
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  // expected-error @+1 {{tc.kernel: tc.mbarrier_expect_tx must be in tc.one_thread: every thread of the CTA would issue it, and each arrival counts}}
  "tc.mbarrier_expect_tx"(%full) {nbytes = 2048 : i64} : (!tc.mbarrier) -> ()
  "tc.one_thread"() ({
    "tc.tma_load"(%map, %i, %i, %t, %full) {row = 0 : i64, nbytes = 2048 : i64,
        operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>}
        : (!tc.tensor_map, index, index, !t, !tc.mbarrier) -> ()
  }) : () -> ()
  "tc.mbarrier_wait"(%full, %i) : (!tc.mbarrier, index) -> ()
  %z = "tc.zero_fragment"() : () -> !z
  %a = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !a
  %b = "tc.load_fragment"(%t) {k = 0 : i64, via = "ldmatrix"} : (!t) -> !b
  %d = "tc.mma_sync"(%a, %b, %z) : (!a, !b, !z) -> !z
  return
}

// -----

// legal: tc.kernel/register-shares
func.func @f(%x: memref<32x32xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 384, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  "tc.warpgroup_registers"() {registers = array<i64: 208, 208, 80>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/register-shares
func.func @f(%x: memref<32x32xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 320, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  // expected-error @+1 {{tc.kernel: registers must have one count per warpgroup of tc.block, 320 threads, got [208, 208, 80]: all warps of a warpgroup execute the same setmaxnreg}}
  "tc.warpgroup_registers"() {registers = array<i64: 208, 208, 80>} : () -> ()
  return
}

// -----

// legal: tc.kernel/register-pool
func.func @f(%x: memref<32x32xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 384, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  "tc.warpgroup_registers"() {registers = array<i64: 208, 208, 88>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/register-pool
func.func @f(%x: memref<32x32xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 384, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  // expected-error @+1 {{tc.kernel: shares must add up to at most 504 registers per thread (.maxnreg 168, the SM has 65536), got 208 + 208 + 96 = 512: setmaxnreg.inc waits for registers that no warpgroup gives back}}
  "tc.warpgroup_registers"() {registers = array<i64: 208, 208, 96>} : () -> ()
  return
}

// -----

// legal: tc.kernel/bulk-commit
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 32, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  %tile = "tc.smem_tile"() : () -> !tile
  %i = arith.constant 0 : index
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  "tc.bulk_commit"() : () -> ()
  "tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()
  return
}

// -----

// illegal: tc.kernel/bulk-commit
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 32, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  %tile = "tc.smem_tile"() : () -> !tile
  %i = arith.constant 0 : index
  "tc.bulk_commit"() : () -> ()
  "tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()
  // expected-error @+1 {{tc.kernel: no tc.bulk_commit follows this tc.tma_store in its role: no wait covers a group that is not closed}}
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  return
}

// -----

// legal: tc.kernel/bulk-wait
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 32, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  %tile = "tc.smem_tile"() : () -> !tile
  %i = arith.constant 0 : index
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  "tc.bulk_commit"() : () -> ()
  "tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()
  return
}

// -----

// illegal: tc.kernel/bulk-wait
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
func.func @f(%out: memref<128x256xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 32, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  %tile = "tc.smem_tile"() : () -> !tile
  %i = arith.constant 0 : index
  "tc.tma_store"(%map, %i, %i, %tile) {row = 0 : i64,
      operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
  // expected-error @+1 {{tc.kernel: no tc.bulk_wait of pending = 0 follows this tc.bulk_commit in its role: the CTA could end, and its shared memory be given away, before the tiles are read}}
  "tc.bulk_commit"() : () -> ()
  return
}

// -----

// legal: tc.kernel/staged-tile-reuse
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!ring = !tc.ring<8 : i64, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">>
func.func @f(%out: memref<128x256xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !ring
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %v = arith.constant dense<0.0> : vector<32x16xf16>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %i = %c0 to %c4 step %c1 {
      %turn = arith.remui %i, %c2 : index
      %mine = arith.muli %w, %c2 : index
      %n = arith.addi %mine, %turn : index
      %tile = "tc.slot"(%ring, %n) : (!ring, index) -> !tile
      "tc.bulk_wait"() {pending = 1 : i64, read = true} : () -> ()
      "tc.warp_barrier"() : () -> ()
      "tc.store_shared"(%v, %tile, %c0, %c0) : (vector<32x16xf16>, !tile, index, index) -> ()
      "tc.fence"() {kind = "proxy.async"} : () -> ()
      "tc.warp_barrier"() : () -> ()
      "tc.tma_store"(%map, %c0, %i, %tile) {row = 0 : i64,
          operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
      "tc.bulk_commit"() : () -> ()
    }
    "tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.kernel/staged-tile-reuse
!tile = !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
!ring = !tc.ring<8 : i64, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">>
func.func @f(%out: memref<128x256xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>,
        tc.target = "sm_100a", tc.async} {
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  %ring = "tc.smem_tile"() : () -> !ring
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %v = arith.constant dense<0.0> : vector<32x16xf16>
  "tc.role"() ({
  ^bb0(%w: index):
    scf.for %i = %c0 to %c4 step %c1 {
      %turn = arith.remui %i, %c2 : index
      %mine = arith.muli %w, %c2 : index
      %n = arith.addi %mine, %turn : index
      %tile = "tc.slot"(%ring, %n) : (!ring, index) -> !tile
      "tc.bulk_wait"() {pending = 2 : i64, read = true} : () -> ()
      "tc.warp_barrier"() : () -> ()
      "tc.store_shared"(%v, %tile, %c0, %c0) : (vector<32x16xf16>, !tile, index, index) -> ()
      "tc.fence"() {kind = "proxy.async"} : () -> ()
      "tc.warp_barrier"() : () -> ()
      // expected-error @+1 {{tc.kernel: 2 tiles of a warp for 4 stores: tc.store_shared overwrites one that TMA may still read; in the loop of the stores, wait with tc.bulk_wait of pending at most 1, got 2: that many groups are of the other tiles}}
      "tc.tma_store"(%map, %c0, %i, %tile) {row = 0 : i64,
          operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tile) -> ()
      "tc.bulk_commit"() : () -> ()
    }
    "tc.bulk_wait"() {pending = 0 : i64, read = true} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.kernel/programmatic-wait
func.func @f(%x: memref<8xf32>, %out: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.programmatic, tc.grid = array<i64: 1, 1, 1>,
        tc.block = array<i64: 128, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.grid_wait"() : () -> ()
    %v = memref.load %x[%c0] : memref<8xf32>
  }) {kind = "epilogue", threads = "warp", warps = array<i64: 0, 1, 2, 3>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/programmatic-wait
func.func @f(%x: memref<8xf32>, %out: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.programmatic, tc.grid = array<i64: 1, 1, 1>,
        tc.block = array<i64: 128, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%w: index):
    // expected-error @+1 {{tc.kernel: memref.load must be behind a tc.grid_wait of its role: the kernel is tc.programmatic, so the launch before it may still write what is read here, or read what is written; run programmatic-launch}}
    %v = memref.load %x[%c0] : memref<8xf32>
    "tc.grid_wait"() : () -> ()
  }) {kind = "epilogue", threads = "warp", warps = array<i64: 0, 1, 2, 3>} : () -> ()
  return
}

// -----

// legal: tc.kernel/launch-request-grid
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>,
        tc.block = array<i64: 128, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    "tc.launch_request"(%r, %c0, %f) : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/launch-request-grid
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 2, 1>,
        tc.block = array<i64: 128, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    // expected-error @+1 {{tc.kernel: a kernel that takes over CTAs must have a grid along x, without clusters, or with cta_group = 2 on the request of a pair, got tc.grid [6, 2, 1], tc.cluster none and cta_group = 1: tc.launch_query gives the number of one CTA along x, and a request takes over whole clusters}}
    "tc.launch_request"(%r, %c0, %f) : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// legal: tc.kernel/launch-request-reuse
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %e = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%e, %c0) : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    "tc.launch_request"(%r, %c0, %f) : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%f, %c0) : (!tc.mbarrier, index) -> ()
    %g, %cta = "tc.launch_query"(%r, %c0) : (!tc.launch_response_table, index) -> (i1, index)
    "tc.fence"() {kind = "proxy.async"} : () -> ()
    "tc.mbarrier_arrive"(%e) : (!tc.mbarrier) -> ()
  }) {kind = "mma", threads = "one", warps = array<i64: 1>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/launch-request-reuse
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %e = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%e, %c0) : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    "tc.launch_request"(%r, %c0, %f) : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%f, %c0) : (!tc.mbarrier, index) -> ()
    // expected-error @+1 {{tc.kernel: the role "mma" reads a response and does not release it: it needs tc.fence "proxy.async" and tc.mbarrier_arrive behind tc.launch_query, on a barrier that the thread of the next tc.launch_request waits for; the request overwrites the response}}
    %g, %cta = "tc.launch_query"(%r, %c0) : (!tc.launch_response_table, index) -> (i1, index)
    "tc.mbarrier_arrive"(%e) : (!tc.mbarrier) -> ()
  }) {kind = "mma", threads = "one", warps = array<i64: 1>} : () -> ()
  return
}
