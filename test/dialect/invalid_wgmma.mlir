// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.wgmma/operands
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma/operands
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 64, 24>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma: expected a fragment of C and a result like it, got !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16"> and !tc.fragment<array<i64: 64, 24>, i32, "C", "mma.m16n8k32.b8">: wgmma adds to the registers that it reads}}
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma/shapes
!a = !tc.smem<array<i64: 128, 32>, f16, "K", "64B">
!b = !tc.smem<array<i64: 256, 32>, f16, "MN", "64B">
!c = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma/shapes
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 40, 32>, f16, "K", "64B">
!c = !tc.fragment<array<i64: 64, 40>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 64, 40>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma: expected A [m, k], B [n, k] and C [m, n] with m a multiple of 64 (a warpgroup's rows), n a multiple of 8 in [8, 256], and k of whole instructions of 16 elements (32 bytes), got [64, 64], [40, 32] and [64, 40]}}
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma/shapes
!a = !tc.smem<array<i64: 64, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 48, 128>, i8, "K", "128B">
!c = !tc.fragment<array<i64: 64, 48>, i32, "C", "mma.m16n8k32.b8">
!d = !tc.fragment<array<i64: 64, 48>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma/shapes
!a = !tc.smem<array<i64: 64, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 40, 128>, i8, "K", "128B">
!c = !tc.fragment<array<i64: 64, 40>, i32, "C", "mma.m16n8k32.b8">
!d = !tc.fragment<array<i64: 64, 40>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma: expected A [m, k], B [n, k] and C [m, n] with m a multiple of 64 (a warpgroup's rows), n one of 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, and k of whole instructions of 32 elements (32 bytes), got [64, 128], [40, 128] and [64, 40]}}
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma/types
!a = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 24, 128>, f8E5M2, "K", "128B">
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">
!d = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma/types
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, bf16, "K", "128B">
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma: expected element types of wgmma with an accumulator of f32, got f16 x bf16 -> f32: f16, bf16, f32 (as tf32) and i8 are not mixed, e4m3 and e5m2 are}}
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma/major
!a = !tc.smem<array<i64: 64, 64>, bf16, "MN", "128B">
!b = !tc.smem<array<i64: 64, 64>, bf16, "MN", "128B">
!c = !tc.fragment<array<i64: 64, 64>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 64, 64>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma/major
!a = !tc.smem<array<i64: 64, 32>, f32, "K", "128B">
!b = !tc.smem<array<i64: 32, 32>, f32, "MN", "128B_ATOM_32B">
!c = !tc.fragment<array<i64: 64, 32>, f32, "C", "mma.m16n8k8.tf32">
!d = !tc.fragment<array<i64: 64, 32>, f32, "C", "mma.m16n8k8.tf32">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma: expected K-major tiles of f32, got K and MN: wgmma transposes elements of 16 bits only; store the operand with K innermost}}
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma/unsigned
!a = !tc.smem<array<i64: 64, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 48, 128>, i8, "K", "128B">
!c = !tc.fragment<array<i64: 64, 48>, i32, "C", "mma.m16n8k32.b8">
!d = !tc.fragment<array<i64: 64, 48>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b, %c: !c) {
  %d = "tc.wgmma"(%a, %b, %c) {unsigned = array<i64: 1, 0>} : (!a, !b, !c) -> !d
  return
}

// -----

// illegal: tc.wgmma/unsigned
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
!d = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b, %c: !c) {
  // expected-error @+1 {{tc.wgmma: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 1, 0> on f16: only integers come unsigned}}
  %d = "tc.wgmma"(%a, %b, %c) {unsigned = array<i64: 1, 0>} : (!a, !b, !c) -> !d
  return
}

// -----

// legal: tc.wgmma_wait/pending
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
!e = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%d: !c) {
  %e = "tc.wgmma_wait"(%d) {pending = 7 : i64} : (!c) -> !e
  return
}

// -----

// illegal: tc.wgmma_wait/pending
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
!e = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%d: !c) {
  // expected-error @+1 {{tc.wgmma_wait: pending must be in [0, 7], got 8: it is the number of groups that may be incomplete}}
  %e = "tc.wgmma_wait"(%d) {pending = 8 : i64} : (!c) -> !e
  return
}

// -----

// legal: tc.wgmma_wait/operands
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
!e = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%d: !c) {
  %e = "tc.wgmma_wait"(%d) {pending = 0 : i64} : (!c) -> !e
  return
}

// -----

// illegal: tc.wgmma_wait/operands
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
!e = !tc.fragment<array<i64: 64, 24>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%d: !c) {
  // expected-error @+1 {{tc.wgmma_wait: expected a result like the fragment waited for, got !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16"> and !tc.fragment<array<i64: 64, 24>, i32, "C", "mma.m16n8k32.b8">}}
  %e = "tc.wgmma_wait"(%d) {pending = 0 : i64} : (!c) -> !e
  return
}

// -----

// legal: tc.kernel/wgmma-target
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f() attributes {tc.block = array<i64: 288, 1, 1>, tc.grid = array<i64: 1, 1, 1>,
    tc.kernel, tc.target = "sm_90a", tc.warp_map = "wgmma", tc.warps = array<i64: 8, 1>} {
  %a = "tc.smem_tile"() : () -> !a
  %b = "tc.smem_tile"() : () -> !b
  %c = "tc.zero_fragment"() : () -> !c
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// illegal: tc.kernel/wgmma-target
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f() attributes {tc.block = array<i64: 288, 1, 1>, tc.grid = array<i64: 1, 1, 1>,
    tc.kernel, tc.target = "sm_90", tc.warp_map = "wgmma", tc.warps = array<i64: 8, 1>} {
  %a = "tc.smem_tile"() : () -> !a
  %b = "tc.smem_tile"() : () -> !b
  %c = "tc.zero_fragment"() : () -> !c
  // expected-error @+1 {{tc.kernel: tc.target must be sm_90a for wgmma, got sm_90: other architectures have other tensor cores}}
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// legal: tc.kernel/wgmma-warps
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f() attributes {tc.block = array<i64: 288, 1, 1>, tc.grid = array<i64: 1, 1, 1>,
    tc.kernel, tc.target = "sm_90a", tc.warp_map = "wgmma", tc.warps = array<i64: 8, 1>} {
  %a = "tc.smem_tile"() : () -> !a
  %b = "tc.smem_tile"() : () -> !b
  %c = "tc.zero_fragment"() : () -> !c
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// illegal: tc.kernel/wgmma-warps
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f() attributes {tc.block = array<i64: 288, 1, 1>, tc.grid = array<i64: 1, 1, 1>,
    tc.kernel, tc.target = "sm_90a", tc.warp_map = "wgmma", tc.warps = array<i64: 4, 2>} {
  %a = "tc.smem_tile"() : () -> !a
  %b = "tc.smem_tile"() : () -> !b
  %c = "tc.zero_fragment"() : () -> !c
  // expected-error @+1 {{tc.kernel: tc.warps must give each warp 16 rows and all columns of a product of wgmma, got array<i64: 4, 2> for 128 rows: a warpgroup has 64 of them}}
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// legal: tc.kernel/wgmma-wait
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f() attributes {tc.async, tc.block = array<i64: 288, 1, 1>, tc.grid = array<i64: 1, 1, 1>,
    tc.kernel, tc.target = "sm_90a", tc.warp_map = "wgmma", tc.warps = array<i64: 8, 1>} {
  %a = "tc.smem_tile"() : () -> !a
  %b = "tc.smem_tile"() : () -> !b
  %c = "tc.zero_fragment"() : () -> !c
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !c
  %e = "tc.wgmma_wait"(%d) {pending = 0 : i64} : (!c) -> !c
  return
}

// -----

// illegal: tc.kernel/wgmma-wait
!a = !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "K", "128B">
!c = !tc.fragment<array<i64: 128, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f() attributes {tc.async, tc.block = array<i64: 288, 1, 1>, tc.grid = array<i64: 1, 1, 1>,
    tc.kernel, tc.target = "sm_90a", tc.warp_map = "wgmma", tc.warps = array<i64: 8, 1>} {
  %a = "tc.smem_tile"() : () -> !a
  %b = "tc.smem_tile"() : () -> !b
  %c = "tc.zero_fragment"() : () -> !c
  // expected-error @+1 {{tc.kernel: no tc.wgmma_wait follows this tc.wgmma in its role: nothing tells when it is complete}}
  %d = "tc.wgmma"(%a, %b, %c) : (!a, !b, !c) -> !c
  return
}

// -----

// legal: tc.wgmma_product/result
!a = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 24, 128>, f8E5M2, "K", "128B">
!d = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !d
  return
}

// -----

// illegal: tc.wgmma_product/result
!a = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 32, 128>, f8E5M2, "K", "128B">
!d = !tc.fragment<array<i64: 64, 32>, f8E4M3FN, "A", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{tc.wgmma_product: expected a fragment of C as result, got !tc.fragment<array<i64: 64, 32>, f8E4M3FN, "A", "mma.m16n8k32.b8">: wgmma leaves sums}}
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !d
  return
}

// -----

// legal: tc.wgmma_product/shapes
!a = !tc.smem<array<i64: 128, 64>, f8E5M2, "K", "64B">
!b = !tc.smem<array<i64: 256, 64>, f8E5M2, "K", "64B">
!d = !tc.fragment<array<i64: 128, 256>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !d
  return
}

// -----

// illegal: tc.wgmma_product/shapes
!a = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 40, 128>, f8E4M3FN, "K", "128B">
!d = !tc.fragment<array<i64: 64, 80>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{tc.wgmma_product: expected A [m, k], B [n, k] and C [m, n] with m a multiple of 64 (a warpgroup's rows), n a multiple of 8 in [8, 256], and k of whole instructions of 32 elements (32 bytes), got [64, 128], [40, 128] and [64, 80]}}
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !d
  return
}

// -----

// legal: tc.wgmma_product/types
!a = !tc.smem<array<i64: 64, 64>, f16, "K", "128B">
!b = !tc.smem<array<i64: 24, 64>, f16, "MN", "64B">
!d = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k16.f16">
func.func @f(%a: !a, %b: !b) {
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !d
  return
}

// -----

// illegal: tc.wgmma_product/types
!a = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 24, 128>, i8, "K", "128B">
!d = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{tc.wgmma_product: expected element types of wgmma with an accumulator of f32, got f8E4M3FN x i8 -> f32: f16, bf16, f32 (as tf32) and i8 are not mixed, e4m3 and e5m2 are}}
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !d
  return
}

// -----

// legal: tc.wgmma_product/major
!a = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!d = !tc.fragment<array<i64: 64, 64>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !d
  return
}

// -----

// illegal: tc.wgmma_product/major
!a = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 128, 128>, f8E4M3FN, "MN", "128B">
!d = !tc.fragment<array<i64: 64, 128>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{tc.wgmma_product: expected K-major tiles of f8E4M3FN, got K and MN: wgmma transposes elements of 16 bits only; store the operand with K innermost}}
  %d = "tc.wgmma_product"(%a, %b) : (!a, !b) -> !d
  return
}

// -----

// legal: tc.wgmma_product/unsigned
!a = !tc.smem<array<i64: 64, 128>, i8, "K", "128B">
!b = !tc.smem<array<i64: 48, 128>, i8, "K", "128B">
!d = !tc.fragment<array<i64: 64, 48>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  %d = "tc.wgmma_product"(%a, %b) {unsigned = array<i64: 0, 1>} : (!a, !b) -> !d
  return
}

// -----

// illegal: tc.wgmma_product/unsigned
!a = !tc.smem<array<i64: 64, 128>, f8E4M3FN, "K", "128B">
!b = !tc.smem<array<i64: 24, 128>, f8E4M3FN, "K", "128B">
!d = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{tc.wgmma_product: unsigned must be array<i64: a, b> of 0 or 1 on i8 operands, got array<i64: 1, 0> on f8E4M3FN: only integers come unsigned}}
  %d = "tc.wgmma_product"(%a, %b) {unsigned = array<i64: 1, 0>} : (!a, !b) -> !d
  return
}

// -----

// legal: tc.add_fragment/types
!c = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !c, %b: !c) {
  %c = "tc.add_fragment"(%a, %b) : (!c, !c) -> !c
  return
}

// -----

// illegal: tc.add_fragment/types
!a = !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">
!b = !tc.fragment<array<i64: 64, 24>, i32, "C", "mma.m16n8k32.b8">
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{tc.add_fragment: expected two fragments of C of f32 and a result like them, got !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">, !tc.fragment<array<i64: 64, 24>, i32, "C", "mma.m16n8k32.b8"> and !tc.fragment<array<i64: 64, 24>, f32, "C", "mma.m16n8k32.b8">: what is added lies in the same registers}}
  %c = "tc.add_fragment"(%a, %b) : (!a, !b) -> !a
  return
}
