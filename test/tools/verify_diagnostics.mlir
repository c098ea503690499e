// RUN: %tc-opt %s --split-input-file --verify-diagnostics
// RUN: %exits 3 %tc-opt %s --split-input-file | %filecheck %s

// CHECK: verify_diagnostics.mlir:9:8: error: 'arith.addf' op operand #1 must be floating-point-like
// CHECK-NEXT: "arith.addf"
// CHECK-NEXT: ^

func.func @wrong_type(%x: f32, %i: i32) {
  %y = "arith.addf"(%x, %i) : (f32, i32) -> f32 // expected-error {{operand #1 must be floating-point-like}}
  return
}

// -----

func.func @next_line(%x: f32, %i: i32) {
  // expected-error @+1 {{operand #1 must be floating-point-like}}
  %y = "arith.addf"(%x, %i) : (f32, i32) -> f32
  return
}

// -----

func.func @below(%x: f32, %i: i32) {
  // expected-error-re @below {{operand #{{[0-9]}} must be}}
  // expected-note @below {{see current operation}}
  %y = "arith.addf"(%x, %i) : (f32, i32) -> f32
  return
}

// -----

func.func @fine() {
  return
}
