// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Rules of a kernel are reported at the function or at the op at fault, every violation of them.

func.func @legal(%x: memref<4xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  return
}

// -----

// expected-error @+1 {{tc.kernel: tc.block must be array<i64: x, y, z> of whole warps, at most 1024 threads, got array<i64: 200, 1, 1>}}
func.func @at_the_function(%x: memref<4xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 200, 1, 1>,
        tc.target = "sm_100a"} {
  return
}

// -----

func.func @at_each_op(%x: memref<4xf16>)
    attributes {tc.kernel, tc.grid = array<i64: 28, 1, 1>, tc.block = array<i64: 192, 1, 1>,
        tc.target = "sm_100a"} {
  %base0 = "tc.tmem_alloc"() {columns = 64 : i64} : () -> !tc.tmem_base
  // expected-error @+1 {{tc.kernel: an allocation must not be larger than an earlier one of the CTA (64 columns), got 128; allocate the largest first}}
  %base1 = "tc.tmem_alloc"() {columns = 128 : i64} : () -> !tc.tmem_base
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  // expected-error @+1 {{tc.kernel: the allocation of 64 columns is freed more than once}}
  "tc.tmem_dealloc"(%base0) {columns = 64 : i64} : (!tc.tmem_base) -> ()
  "tc.tmem_dealloc"(%base1) {columns = 128 : i64} : (!tc.tmem_base) -> ()
  return
}
