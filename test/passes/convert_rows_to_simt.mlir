// RUN: %tc-opt %s --split-input-file --convert-to-simt --verify-diagnostics | %filecheck %s

// A row of 4,096: 256 threads, each with four runs of 16 bytes. A tree over what a thread has, the
// lanes of a warp, then the warps through shared memory.
// CHECK: llvm.mlir.global external @partials() {addr_space = 3
// CHECK: llvm.func @long({{.*}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 256, 1, 1>, tc.grid = array<i64: 512, 1, 1>, {{.*}}tc.smem_bytes = 64
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT: arith.select
// CHECK-COUNT-15: arith.addf
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
func.func @long(%x: tensor<512x4096xf32>) -> tensor<512xf32> attributes {tc.simt} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  // expected-remark @+1 {{1 reduction over 4096 elements: 256 threads per row, 1 row per CTA (memory is contiguous along rows); loads of 4 elements; elements stay in registers}}
  %m = linalg.reduce ins(%x : tensor<512x4096xf32>) outs(%i : tensor<512xf32>) dimensions = [1] (%a: f32, %b: f32) {
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }
  return %m : tensor<512xf32>
}

// -----

// A row of 24: a few lanes, no shared memory. What is behind the row counts as -inf, and the last
// row of the last CTA is stored by no other thread.
// CHECK: llvm.func @short({{.*}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 1, 1>, tc.grid = array<i64: 75, 1, 1>, {{.*}}tc.smem_bytes = 0
// CHECK: %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %c6_i32
// CHECK: arith.constant 0xFF800000 : f32
// CHECK-COUNT-4: arith.select %[[IN]]
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK-NOT: nvvm.barrier
func.func @short(%x: tensor<300x24xf32>) -> tensor<300xf32> attributes {tc.simt} {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<300xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<300xf32>) -> tensor<300xf32>
  // expected-remark @+1 {{1 reduction over 24 elements: 8 threads per row, 4 rows per CTA}}
  %m = linalg.reduce ins(%x : tensor<300x24xf32>) outs(%i : tensor<300xf32>) dimensions = [1] (%a: f32, %b: f32) {
    %t = arith.maximumf %a, %b : f32
    linalg.yield %t : f32
  }
  return %m : tensor<300xf32>
}

// -----

// What is elementwise behind the reduction is of the same row: its elements are loaded once.
// CHECK-LABEL: llvm.func @centred(
// CHECK-COUNT-1: llvm.load %{{.*}} -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK: nvvm.shfl.sync
// CHECK-NOT: llvm.load
// CHECK-COUNT-4: arith.subf
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
func.func @centred(%x: tensor<64x32xf32>) -> tensor<64x32xf32> attributes {tc.simt} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = tensor.empty() : tensor<64x32xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.reduce ins(%x : tensor<64x32xf32>) outs(%i : tensor<64xf32>) dimensions = [1] (%a: f32, %b: f32) {
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }
  // expected-remark @+1 {{1 reduction over 32 elements: 8 threads per row, 4 rows per CTA}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%x, %s : tensor<64x32xf32>, tensor<64xf32>) outs(%f : tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<64x32xf32>
  return %y : tensor<64x32xf32>
}

// -----

// A row of up to 1,024 elements has one warp, if 1,024 warps have one: no barrier. What the result
// reads besides is loaded before the warp waits.
// CHECK: llvm.func @warps({{.*}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, tc.grid = array<i64: 256, 1, 1>, {{.*}}tc.smem_bytes = 0
// CHECK-COUNT-6: llvm.load %{{.*}} -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync
// CHECK-NOT: nvvm.barrier
// CHECK-NOT: llvm.load
// CHECK-COUNT-3: llvm.store
func.func @warps(%x: tensor<1024x768xf16>, %w: tensor<768xf16>) -> tensor<1024x768xf16> attributes {tc.simt} {
  %low = arith.constant 0xFC00 : f16
  %e = tensor.empty() : tensor<1024xf16>
  %f = tensor.empty() : tensor<1024x768xf16>
  %i = linalg.fill ins(%low : f16) outs(%e : tensor<1024xf16>) -> tensor<1024xf16>
  %m = linalg.reduce ins(%x : tensor<1024x768xf16>) outs(%i : tensor<1024xf16>) dimensions = [1] (%a: f16, %b: f16) {
    %t = arith.maximumf %a, %b : f16
    linalg.yield %t : f16
  }
  // expected-remark @+1 {{1 reduction over 768 elements: 32 threads per row, 4 rows per CTA}}
  %y = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%x, %m, %w : tensor<1024x768xf16>, tensor<1024xf16>, tensor<768xf16>) outs(%f : tensor<1024x768xf16>) {
  ^bb0(%a: f16, %b: f16, %c: f16, %o: f16):
    %t = arith.subf %a, %b : f16
    %u = arith.mulf %t, %c : f16
    linalg.yield %u : f16
  } -> tensor<1024x768xf16>
  return %y : tensor<1024x768xf16>
}

// -----

// With fewer rows several warps share one.
// CHECK: llvm.func @fewer({{.*}}) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, tc.grid = array<i64: 1023, 1, 1>
func.func @fewer(%x: tensor<1023x768xf16>) -> tensor<1023xf16> attributes {tc.simt} {
  %low = arith.constant 0xFC00 : f16
  %e = tensor.empty() : tensor<1023xf16>
  %i = linalg.fill ins(%low : f16) outs(%e : tensor<1023xf16>) -> tensor<1023xf16>
  // expected-remark @+1 {{1 reduction over 768 elements: 128 threads per row, 1 row per CTA}}
  %m = linalg.reduce ins(%x : tensor<1023x768xf16>) outs(%i : tensor<1023xf16>) dimensions = [1] (%a: f16, %b: f16) {
    %t = arith.maximumf %a, %b : f16
    linalg.yield %t : f16
  }
  return %m : tensor<1023xf16>
}

// -----

// Rows too long for registers go by in rounds.
// CHECK-LABEL: llvm.func @rounds(
// CHECK: %[[T:.*]] = scf.for %{{.*}} = %{{.*}} to %c4{{.*}} iter_args(%{{.*}}) -> (f32)
// CHECK-COUNT-8: llvm.load %{{.*}} -> vector<4xi32>
// CHECK: scf.yield
// CHECK: nvvm.shfl.sync
func.func @rounds(%x: tensor<2x65536xf32>) -> tensor<2xf32> attributes {tc.simt} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2xf32>) -> tensor<2xf32>
  // expected-remark @+1 {{loads of 4 elements; each reduction reads the elements again, in 4 rounds}}
  %m = linalg.reduce ins(%x : tensor<2x65536xf32>) outs(%i : tensor<2xf32>) dimensions = [1] (%a: f32, %b: f32) {
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }
  return %m : tensor<2xf32>
}

// -----

// Over the rows: neighbours in a warp have different columns, four each.
// CHECK-LABEL: llvm.func @columns(
// CHECK: llvm.load %{{.*}} -> vector<4xi32>
// CHECK: nvvm.barrier
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
func.func @columns(%x: tensor<300x64xf32>) -> tensor<64xf32> attributes {tc.simt} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  // expected-remark @+1 {{1 reduction over 300 elements: 128 threads share 4 adjacent results, 4 such groups per CTA (memory is contiguous across the results); loads of 4 elements; elements stay in registers}}
  %m = linalg.reduce ins(%x : tensor<300x64xf32>) outs(%i : tensor<64xf32>) dimensions = [0] (%a: f32, %b: f32) {
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }
  return %m : tensor<64xf32>
}

// -----

// Rows that are not aligned: a thread has four runs of two elements, all of whose loads come before
// the first store.
// CHECK-LABEL: llvm.func @unaligned(
// CHECK-SAME: tc.grid = array<i64: 2049, 1, 1>
// CHECK-COUNT-16: llvm.load %{{.*}} -> f16
// CHECK-NOT: llvm.load
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 4 : i64} : vector<1xi32>, !llvm.ptr<1>
func.func @unaligned(%x: tensor<1024x2049xf16>, %y: tensor<1024x2049xf16>) -> tensor<1024x4098xf16> attributes {tc.simt} {
  %z = tensor.concat dim(1) %x, %y : (tensor<1024x2049xf16>, tensor<1024x2049xf16>) -> tensor<1024x4098xf16>
  return %z : tensor<1024x4098xf16>
}

// -----

// The short rows of a transpose: two of 8 bytes together, of two elements that each of four loads.
// CHECK-LABEL: llvm.func @narrow(
// CHECK-SAME: tc.grid = array<i64: 1024, 1, 1>
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<1> -> i32
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-NOT: llvm.store
func.func @narrow(%x: tensor<4x524288xf16>) -> tensor<524288x4xf16> attributes {tc.simt} {
  %e = tensor.empty() : tensor<524288x4xf16>
  %y = linalg.transpose ins(%x : tensor<4x524288xf16>) outs(%e : tensor<524288x4xf16>) permutation = [1, 0]
  return %y : tensor<524288x4xf16>
}

// -----

// Elementwise: 16 bytes of each operand for a thread, of i8 as many elements as of f16.
// CHECK-LABEL: llvm.func @runs(
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-NOT: llvm.store
func.func @runs(%x: tensor<64x64xf16>, %q: tensor<64x64xi8>) -> tensor<64x64xf16> attributes {tc.simt} {
  %w = arith.sitofp %q : tensor<64x64xi8> to tensor<64x64xf16>
  %y = arith.addf %x, %w : tensor<64x64xf16>
  return %y : tensor<64x64xf16>
}

// -----

// Of parts that are multiples of a run each thread's elements are in one: both loads are of 16 bytes.
// CHECK-LABEL: llvm.func @parts(
// CHECK-COUNT-2: llvm.load %{{.*}} -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK: llvm.store %{{.*}} : vector<4xi32>
func.func @parts(%x: tensor<32x96xf32>, %y: tensor<32x32xf32>) -> tensor<32x128xf32> attributes {tc.simt} {
  %z = tensor.concat dim(1) %x, %y : (tensor<32x96xf32>, tensor<32x32xf32>) -> tensor<32x128xf32>
  return %z : tensor<32x128xf32>
}

// -----

// A transpose: 64 x 64 elements through shared memory, so that loads and stores are of 16 bytes. The
// bias, which is contiguous along the result's rows, is loaded from there.
// CHECK-LABEL: llvm.func @across(
// CHECK-SAME: tc.grid = array<i64: 4, 1, 1>
// CHECK-SAME: tc.smem_bytes = 16640
// CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-COUNT-8: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-COUNT-8: arith.addf
// CHECK: scf.if
// CHECK-NEXT: {{.*}}
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
func.func @across(%x: tensor<128x96xf16>, %b: tensor<128xf16>) -> tensor<96x128xf16> attributes {tc.simt} {
  %e = tensor.empty() : tensor<96x128xf16>
  %y = linalg.transpose ins(%x : tensor<128x96xf16>) outs(%e : tensor<96x128xf16>) permutation = [1, 0]
  // expected-remark @+1 {{tiles of 64 x 64 through shared memory: 1 of the operands is contiguous along dimension 0, the result along 1; loads of 8 elements}}
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]} ins(%y, %b : tensor<96x128xf16>, tensor<128xf16>) outs(%e : tensor<96x128xf16>) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    %s = arith.addf %p, %q : f16
    linalg.yield %s : f16
  } -> tensor<96x128xf16>
  return %z : tensor<96x128xf16>
}
