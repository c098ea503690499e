// RUN: %tc-opt %s --split-input-file --convert-to-simt --verify-diagnostics | %filecheck %s

// Padding is selected, and the load beside the edge stays inside. A window has no loops.
// CHECK: llvm.func @pool
// CHECK-NOT: scf.for
// CHECK: arith.minui
// CHECK: llvm.load
// CHECK: arith.select
// CHECK-COUNT-9: arith.maximumf
func.func @pool(%x: tensor<1x6x6x4xf32>) -> tensor<1x3x3x4xf32> attributes {tc.simt} {
  %low = arith.constant 0xFF800000 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 0, 0, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %low : f32
  } : tensor<1x6x6x4xf32> to tensor<1x7x7x4xf32>
  %w = tensor.empty() : tensor<3x3xf32>
  %e = tensor.empty() : tensor<1x3x3x4xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  %y = linalg.pooling_nhwc_max {strides = dense<2> : vector<2xi64>, dilations = dense<1> : vector<2xi64>} ins(%p, %w : tensor<1x7x7x4xf32>, tensor<3x3xf32>) outs(%i : tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  return %y : tensor<1x3x3x4xf32>
}

// -----

// What is written into a slice: each element is one of the slice or one that was there, and both
// loads are inside.
// CHECK-LABEL: llvm.func @insert(
// CHECK: arith.remui
// CHECK: arith.divui
// CHECK: %[[P:.*]] = arith.minui
// CHECK: %[[A:.*]] = llvm.load
// CHECK: %[[B:.*]] = llvm.load
// CHECK: arith.select %{{.*}}, %[[A]], %[[B]] : f32
func.func @insert(%x: tensor<5xf32>, %y: tensor<12xf32>) -> tensor<12xf32> attributes {tc.simt} {
  %z = tensor.insert_slice %x into %y[1] [5] [2] : tensor<5xf32> into tensor<12xf32>
  return %z : tensor<12xf32>
}

// -----

// A slice may have fewer dimensions, the others have size 1.
// CHECK-LABEL: llvm.func @insert_row(
// CHECK: arith.select
func.func @insert_row(%x: tensor<5xf32>, %y: tensor<3x12xf32>) -> tensor<3x12xf32> attributes {tc.simt} {
  %z = tensor.insert_slice %x into %y[2, 1] [1, 5] [1, 2] : tensor<5xf32> into tensor<3x12xf32>
  return %z : tensor<3x12xf32>
}

// -----

// CHECK-LABEL: llvm.func @row(
// CHECK: llvm.load
func.func @row(%x: tensor<3x12xf32>) -> tensor<5xf32> attributes {tc.simt} {
  %z = tensor.extract_slice %x[2, 1] [1, 5] [1, 2] : tensor<3x12xf32> to tensor<5xf32>
  return %z : tensor<5xf32>
}

// -----

func.func @row_at_run_time(%x: tensor<3x12xf32>) -> tensor<1x5xf32> attributes {tc.simt} {
  %one = arith.constant 1 : index
  %two = arith.addi %one, %one : index
  // expected-error @+1 {{expected a slice by constants, got one by numbers known at run time (a thread computes its place from its index alone)}}
  %z = tensor.extract_slice %x[%two, 1] [1, 5] [1, 2] : tensor<3x12xf32> to tensor<1x5xf32>
  return %z : tensor<1x5xf32>
}

// -----

// Other functions stay.
// CHECK-LABEL: func.func @other(
func.func @other(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = arith.negf %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// A byte is an i32 in a register, sign-extended, and again after what may leave its range.
// CHECK-LABEL: llvm.func @bytes(
// CHECK: %[[B:.*]] = llvm.inline_asm "ld.global.u8 $0, [$1];", "=r,l" %{{.*}} -> i32
// CHECK: %[[L:.*]] = arith.shli %[[B]], %{{.*}} : i32
// CHECK: %[[X:.*]] = arith.shrsi %[[L]], %{{.*}} : i32
// CHECK: %[[S:.*]] = arith.addi %[[X]], %[[X]] : i32
// CHECK: %[[T:.*]] = arith.shli %[[S]], %{{.*}} : i32
// CHECK: arith.shrsi %[[T]], %{{.*}} : i32
// CHECK: "st.global.u8 [$0], $1;"
func.func @bytes(%x: tensor<8xi8>) -> tensor<8xi8> attributes {tc.simt} {
  %y = arith.addi %x, %x : tensor<8xi8>
  return %y : tensor<8xi8>
}

// -----

// CHECK-LABEL: llvm.func @codes(
// CHECK: "cvt.rn.f16x2.e5m2x2 $0, $1;"
// CHECK: "cvt.rn.satfinite.e4m3x2.f32 $0, $2, $1;"
func.func @codes(%x: tensor<8xf8E5M2>) -> tensor<8xf8E4M3FN> attributes {tc.simt} {
  %y = arith.extf %x : tensor<8xf8E5M2> to tensor<8xf32>
  %z = arith.truncf %y : tensor<8xf32> to tensor<8xf8E4M3FN>
  return %z : tensor<8xf8E4M3FN>
}

// -----

// Two f4E2M1FN of a byte: a thread reads its byte, shifts, masks, and stores both of another.
// CHECK-LABEL: llvm.func @nibbles(
// CHECK: %[[B:.*]] = llvm.inline_asm "ld.global.u8 $0, [$1];", "=r,l" %{{.*}} -> i32
// CHECK: %[[R:.*]] = arith.shrui %[[B]], %{{.*}} : i32
// CHECK: arith.andi %[[R]], %{{.*}} : i32
// CHECK: "{ .reg .b8 a; cvt.rn.satfinite.e2m1x2.f32 a, $2, $1; mov.b32 $0, {a, a, a, a}; }"
// CHECK: "{ .reg .b8 a; cvt.rn.satfinite.e2m1x2.f32 a, $2, $1; mov.b32 $0, {a, a, a, a}; }"
// CHECK: "st.global.u8 [$0], $1;"
// CHECK-NOT: "st.global.u8 [$0], $1;"
func.func @nibbles(%x: tensor<8xf4E2M1FN>) -> tensor<8xf4E2M1FN> attributes {tc.simt} {
  %y = arith.extf %x : tensor<8xf4E2M1FN> to tensor<8xf32>
  %z = arith.addf %y, %y : tensor<8xf32>
  %w = arith.truncf %z : tensor<8xf32> to tensor<8xf4E2M1FN>
  return %w : tensor<8xf4E2M1FN>
}

// -----

// Four f6E2M3FN of three bytes: a code lies in one byte or two.
// CHECK-LABEL: llvm.func @six_bits(
// CHECK-COUNT-8: "ld.global.u8 $0, [$1];"
// CHECK-COUNT-3: "st.global.u8 [$0], $1;"
// CHECK-NOT: "st.global.u8 [$0], $1;"
func.func @six_bits(%x: tensor<4xf6E2M3FN>) -> tensor<4xf6E2M3FN> attributes {tc.simt} {
  %z = tensor.empty() : tensor<4xf6E2M3FN>
  %w = linalg.transpose ins(%x : tensor<4xf6E2M3FN>) outs(%z : tensor<4xf6E2M3FN>) permutation = [0]
  return %w : tensor<4xf6E2M3FN>
}

// -----

func.func @negated(%x: tensor<8xf4E2M1FN>) -> tensor<8xf4E2M1FN> attributes {tc.simt} {
  // expected-error @+1 {{expected arith.negf on f32, f16 or bf16, got f4E2M1FN and f4E2M1FN (floats of a byte or less are only converted, PTX ISA 9.7.9.21); extend with arith.extf first, and round last}}
  %y = arith.negf %x : tensor<8xf4E2M1FN>
  return %y : tensor<8xf4E2M1FN>
}

// -----

// expected-error @+1 {{expected rows of whole bytes, got tensor<8x15xi4> (4 bits an element, and the next row begins at a byte); pad the last dimension, or join it with the one before it}}
func.func @half_a_byte(%x: tensor<8x15xi4>) -> tensor<8x15xi8> attributes {tc.simt} {
  %y = arith.extsi %x : tensor<8x15xi4> to tensor<8x15xi8>
  return %y : tensor<8x15xi8>
}

// -----

// expected-error @+1 {{expected static tensors of f32, f16, bf16, f64, i64, i32, i16, i8, i4, i2, i1, f8E4M3FN, f8E5M2, f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E8M0FNU with less than 2^31 elements in memory, got tensor<8xf80>; convert it first}}
func.func @eighty_bits(%x: tensor<8xf80>) -> tensor<8xf80> attributes {tc.simt} {
  return %x : tensor<8xf80>
}

// -----

func.func @sum(%x: tensor<8xf8E5M2>) -> tensor<8xf8E5M2> attributes {tc.simt} {
  // expected-error @+1 {{expected arith.addf on f32, f16 or bf16, got f8E5M2 and f8E5M2 (floats of a byte or less are only converted, PTX ISA 9.7.9.21); extend with arith.extf first, and round last}}
  %y = arith.addf %x, %x : tensor<8xf8E5M2>
  return %y : tensor<8xf8E5M2>
}

// -----

// Functions are instructions of stated accuracy; sqrt.rn is exact. A whole exponent is products.
// CHECK-LABEL: llvm.func @functions(
// CHECK: "sqrt.rn.f32 $0, $1;"
// CHECK: "rsqrt.approx.f32 $0, $1;"
// CHECK: "lg2.approx.f32 $0, $1;"
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[X:.*]], %[[X]] : f32
// CHECK-NEXT: arith.mulf %[[X]], %[[SQUARE]] : f32
func.func @functions(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tc.simt} {
  %three = arith.constant dense<3> : tensor<8xi64>
  %a = math.sqrt %x : tensor<8xf32>
  %b = math.rsqrt %a : tensor<8xf32>
  %c = math.log %b : tensor<8xf32>
  %y = math.fpowi %c, %three : tensor<8xf32>, tensor<8xi64>
  return %y : tensor<8xf32>
}

// -----

func.func @sine(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tc.simt} {
  // expected-error @+1 {{got math.cbrt; no other pipeline takes it: gemm, matmul-warp and the convolutions have contractions}}
  %y = math.cbrt %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @power(%x: tensor<8xf32>) -> tensor<8xf32> attributes {tc.simt} {
  // expected-error @+1 {{expected a constant, finite exponent of math.powf, got another (a power of any two numbers is a logarithm and an exponential: math.log, arith.mulf, math.exp); make it a constant}}
  %y = math.powf %x, %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @double(%x: tensor<8xf64>) -> tensor<8xf64> attributes {tc.simt} {
  // expected-error @+1 {{expected math.exp of f32 or narrower, got one of f64 (PTX ISA 9.7.3: its instruction has no such form); round with arith.truncf before it}}
  %y = math.exp %x : tensor<8xf64>
  return %y : tensor<8xf64>
}

// -----

// The index goes around the loop with the maximum that it depends on.
// CHECK-LABEL: llvm.func @largest(
// CHECK: scf.for %[[K:.*]] = {{.*}} iter_args(%[[M:.*]] = %{{.*}}, %[[I:.*]] = %{{.*}}) -> (f32, i64)
// CHECK: arith.extui %[[K]] : i32 to i64
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[I]] : i64
func.func @largest(%x: tensor<16x32xf32>) -> tensor<16xi64> attributes {tc.simt} {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<16xf32>
  %f = tensor.empty() : tensor<16xi64>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %j = linalg.fill ins(%zero : i64) outs(%f : tensor<16xi64>) -> tensor<16xi64>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x32xf32>) outs(%i, %j : tensor<16xf32>, tensor<16xi64>) {
  ^bb0(%a: f32, %o: f32, %p: i64):
    %n = linalg.index 1 : index
    %k = arith.index_cast %n : index to i64
    %m = arith.maximumf %a, %o : f32
    %c = arith.cmpf ogt, %a, %o : f32
    %s = arith.select %c, %k, %p : i64
    linalg.yield %m, %s : f32, i64
  } -> (tensor<16xf32>, tensor<16xi64>)
  return %y#1 : tensor<16xi64>
}

// -----

// Alone, the maximum goes without the index, and of few elements without a loop.
// CHECK-LABEL: llvm.func @large(
// CHECK-COUNT-8: arith.maximumf
// CHECK-NOT: arith.cmpf
func.func @large(%x: tensor<16x8xf32>) -> tensor<16xf32> attributes {tc.simt} {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0 : i64
  %e = tensor.empty() : tensor<16xf32>
  %f = tensor.empty() : tensor<16xi64>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  %j = linalg.fill ins(%zero : i64) outs(%f : tensor<16xi64>) -> tensor<16xi64>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<16x8xf32>) outs(%i, %j : tensor<16xf32>, tensor<16xi64>) {
  ^bb0(%a: f32, %o: f32, %p: i64):
    %n = linalg.index 1 : index
    %k = arith.index_cast %n : index to i64
    %m = arith.maximumf %a, %o : f32
    %c = arith.cmpf ogt, %a, %o : f32
    %s = arith.select %c, %k, %p : i64
    linalg.yield %m, %s : f32, i64
  } -> (tensor<16xf32>, tensor<16xi64>)
  return %y#0 : tensor<16xf32>
}

// -----

// A thread traps on an index that is outside, and loads the last element then.
// CHECK-LABEL: llvm.func @gather(
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[INDEX:.*]], %{{.*}} : i64
// CHECK: %[[OUTSIDE:.*]] = arith.xori %[[INSIDE]]
// CHECK: scf.if %[[OUTSIDE]] {
// CHECK-NEXT: llvm.inline_asm has_side_effects "trap; // expected an index from 0 to 15"
// CHECK: arith.minui %[[INDEX]], %{{.*}} : i64
func.func @gather(%x: tensor<16xf32>, %at: tensor<8xi64>) -> tensor<8xf32> attributes {tc.simt} {
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]} ins(%at : tensor<8xi64>) outs(%e : tensor<8xf32>) {
  ^bb0(%a: i64, %o: f32):
    %k = arith.index_cast %a : i64 to index
    %g = tensor.extract %x[%k] : tensor<16xf32>
    linalg.yield %g : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @softmax(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {tc.simt} {
  %e = tensor.empty() : tensor<8x8xf32>
  // expected-error @+1 {{got linalg.softmax; no other pipeline takes it}}
  %y = linalg.softmax dimension(1) ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// A reshape goes by groups of dimensions: those of 1 cost nothing, two others a division.
// CHECK-LABEL: llvm.func @reshaped(
// CHECK: scf.if
// CHECK-COUNT-1: arith.remui
// CHECK-NOT: arith.remui
// CHECK: llvm.store
func.func @reshaped(%x: tensor<6x40xf32>) -> tensor<240x1x1xf32> attributes {tc.simt} {
  %v = tensor.expand_shape %x [[0, 1], [2, 3]] output_shape [6, 1, 1, 40] : tensor<6x40xf32> into tensor<6x1x1x40xf32>
  %n = arith.negf %v : tensor<6x1x1x40xf32>
  %c = tensor.collapse_shape %n [[0, 1, 2, 3]] : tensor<6x1x1x40xf32> into tensor<240xf32>
  %y = tensor.expand_shape %c [[0, 1, 2]] output_shape [240, 1, 1] : tensor<240xf32> into tensor<240x1x1xf32>
  return %y : tensor<240x1x1xf32>
}

// -----

// Of each part the load is inside; where the element is in another, it is not taken.
// CHECK-LABEL: llvm.func @parts(
// CHECK: arith.minui
// CHECK: llvm.load
// CHECK: arith.subi
// CHECK: arith.minui
// CHECK: llvm.load
// CHECK: arith.select
func.func @parts(%x: tensor<6x40xf32>, %y: tensor<6x8xf32>) -> tensor<6x48xf32> attributes {tc.simt} {
  %z = tensor.concat dim(1) %x, %y : (tensor<6x40xf32>, tensor<6x8xf32>) -> tensor<6x48xf32>
  return %z : tensor<6x48xf32>
}

// -----

// Each element twice: the index is divided, and rounded down.
// CHECK-LABEL: llvm.func @twice(
// CHECK: %[[Q:.*]] = arith.divsi %{{.*}} : i64
// CHECK: %[[R:.*]] = arith.remsi %{{.*}} : i64
// CHECK: arith.cmpi slt, %[[R]]
// CHECK: arith.addi %[[Q]]
func.func @twice(%x: tensor<20xf32>) -> tensor<40xf32> attributes {tc.simt} {
  %two = arith.constant 2 : index
  %e = tensor.empty() : tensor<40xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(m) -> (m)>], iterator_types = ["parallel"]} outs(%e : tensor<40xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %k = arith.floordivsi %i, %two : index
    %g = tensor.extract %x[%k] : tensor<20xf32>
    linalg.yield %g : f32
  } -> tensor<40xf32>
  return %y : tensor<40xf32>
}

// -----

func.func @quotient(%x: tensor<20xi32>, %y: tensor<20xi32>) -> tensor<20xi32> attributes {tc.simt} {
  %e = tensor.empty() : tensor<20xi32>
  %z = linalg.generic {indexing_maps = [affine_map<(m) -> (m)>, affine_map<(m) -> (m)>, affine_map<(m) -> (m)>], iterator_types = ["parallel"]} ins(%x, %y : tensor<20xi32>, tensor<20xi32>) outs(%e : tensor<20xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    // expected-error @+1 {{expected arith.divsi by a positive constant, of i16, i32, i64 or index, got i32 by another number (a quotient by 0 has no value)}}
    %q = arith.divsi %a, %b : i32
    linalg.yield %q : i32
  } -> tensor<20xi32>
  return %z : tensor<20xi32>
}
