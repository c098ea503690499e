// RUN: %tc-opt %s --split-input-file --canonicalize | %filecheck %s
// RUN: %exits 3 %tc-opt %s --canonicalize | %filecheck %s --check-prefix=WHOLE

// WHOLE: split_input_file.mlir:15:1: error: redefinition of symbol named 'f'

// CHECK: func.func @f() {
// CHECK: // -----
// CHECK: func.func @f(%arg0: i32) {
func.func @f() {
  return
}

// -----

func.func @f(%x: i32) {
  return
}
