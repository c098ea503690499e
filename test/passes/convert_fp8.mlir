// Conversions of register tiles to fp8 and back, two numbers by an instruction; to i8, by words.
// RUN: %tc-opt %s --split-input-file --convert-tc-to-nvvm --verify-diagnostics | %filecheck %s

// 448 is the largest number; what is more than 464 gets the code of NaN, one higher.
// CHECK-LABEL: llvm.func @rounded
// CHECK: %[[PAIR:.*]] = llvm.inline_asm "cvt.rn.satfinite.e4m3x2.f32 $0, $2, $1;", "=h,f,f"
// CHECK: arith.constant 4.640000e+02 : f32
// CHECK: arith.cmpf ogt
// CHECK: arith.addi %[[PAIR]]
// CHECK-COUNT-7: cvt.rn.satfinite.e4m3x2.f32
// CHECK-NOT: cvt.rn
// CHECK: llvm.bitcast %{{.*}} : vector<8xi16> to vector<4xi32>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
func.func @rounded(%x: memref<64x32xf32>, %out: memref<64x32xf8E4M3FN>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x32xf32>, index, index) -> vector<32x16xf32>
    %h = arith.truncf %v : vector<32x16xf32> to vector<32x16xf8E4M3FN>
    "tc.store_rows"(%h, %out, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf8E4M3FN>, memref<64x32xf8E4M3FN>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// A clamped number cannot overflow.
// CHECK-LABEL: llvm.func @clamped
// CHECK: cvt.rn.satfinite.e5m2x2.f32
// CHECK-NOT: arith.cmpf
// CHECK: llvm.store
func.func @clamped(%x: memref<64x32xf32>, %out: memref<64x32xf8E5M2>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x32xf32>, index, index) -> vector<32x16xf32>
    %hi = arith.constant dense<57344.0> : vector<32x16xf32>
    %lo = arith.constant dense<-57344.0> : vector<32x16xf32>
    %a = arith.minimumf %v, %hi : vector<32x16xf32>
    %b = arith.maximumf %lo, %a : vector<32x16xf32>
    %h = arith.truncf %b : vector<32x16xf32> to vector<32x16xf8E5M2>
    "tc.store_rows"(%h, %out, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf8E5M2>, memref<64x32xf8E5M2>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// Clamped on one side only, or by another number: it may overflow.
// CHECK-LABEL: llvm.func @one_side
// CHECK: cvt.rn.satfinite.e4m3x2.f32
// CHECK: arith.cmpf ogt
func.func @one_side(%x: memref<64x32xf32>, %out: memref<64x32xf8E4M3FN>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x32xf32>, index, index) -> vector<32x16xf32>
    %hi = arith.constant dense<448.0> : vector<32x16xf32>
    %lo = arith.constant dense<-480.0> : vector<32x16xf32>
    %a = arith.minimumf %v, %hi : vector<32x16xf32>
    %b = arith.maximumf %lo, %a : vector<32x16xf32>
    %h = arith.truncf %b : vector<32x16xf32> to vector<32x16xf8E4M3FN>
    "tc.store_rows"(%h, %out, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf8E4M3FN>, memref<64x32xf8E4M3FN>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

func.func @arithmetic(%x: memref<64x32xf32>, %out: memref<64x32xf8E5M2>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x32xf32>, index, index) -> vector<32x16xf32>
    %h = arith.truncf %v : vector<32x16xf32> to vector<32x16xf8E5M2>
    // expected-error @+1 {{expected arith.negf on f16, bf16 or f32, got vector<32x16xf8E5M2> (fp8 is only converted, PTX ISA 9.7.9.21); extend with arith.extf first, and round last}}
    %n = arith.negf %h : vector<32x16xf8E5M2>
    "tc.store_rows"(%n, %out, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xf8E5M2>, memref<64x32xf8E5M2>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// Of each number the low byte, four in a word.
// CHECK-LABEL: llvm.func @words
// CHECK: %[[N:.*]] = arith.fptosi %{{.*}} : vector<16xf32> to vector<16xi32>
// CHECK: llvm.extractelement %[[N]]
// CHECK: arith.andi
// CHECK: arith.shli
// CHECK: arith.ori
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>
func.func @words(%x: memref<64x32xf32>, %out: memref<64x32xi8>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x32xf32>, index, index) -> vector<32x16xf32>
    %h = arith.fptosi %v : vector<32x16xf32> to vector<32x16xi8>
    "tc.store_rows"(%h, %out, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xi8>, memref<64x32xi8>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

func.func @arithmetic_on_bytes(%x: memref<64x32xf32>, %out: memref<64x32xi8>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 1024 : i64} {
  %c0 = arith.constant 0 : index
  "tc.role"() ({
  ^bb0(%quarter: index):
    %v = "tc.load_rows"(%x, %c0, %c0) {row_dim = 0 : i64, column_dim = 1 : i64, operandSegmentSizes = array<i32: 1, 2>} : (memref<64x32xf32>, index, index) -> vector<32x16xf32>
    %h = arith.fptosi %v : vector<32x16xf32> to vector<32x16xi8>
    // expected-error @+1 {{expected arith.addi on i16 or i32, got one on i8 (a byte has no register, PTX ISA 5.2.2); compute in i32, and end with arith.trunci or fptosi}}
    %n = arith.addi %h, %h : vector<32x16xi8>
    "tc.store_rows"(%n, %out, %c0, %c0) {rows = 32 : i64, row_dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 2>} : (vector<32x16xi8>, memref<64x32xi8>, index, index) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
