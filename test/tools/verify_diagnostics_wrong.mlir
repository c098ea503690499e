// --verify-diagnostics itself: a missing, an unexpected and a misplaced diagnostic.
// RUN: %exits 1 %tc-opt %s --split-input-file --verify-diagnostics | %filecheck %s

// CHECK: verify_diagnostics_wrong.mlir:9:1: error: expected error "never said" was not produced
// CHECK: verify_diagnostics_wrong.mlir:16:{{[0-9]+}}: error: unexpected error: 'arith.addf' op
// CHECK: error: unexpected error: 'arith.addf' op
// CHECK: error: expected error "must be floating-point-like" was not produced

// expected-error @+1 {{never said}}
func.func @f() {
  return
}

// -----
func.func @g(%x: f32, %i: i32) {
  %y = "arith.addf"(%x, %i) : (f32, i32) -> f32
  return
}

// -----
// expected-error @+1 {{must be floating-point-like}}
func.func @h(%x: f32, %i: i32) {
  %y = "arith.addf"(%x, %i) : (f32, i32) -> f32
  return
}
