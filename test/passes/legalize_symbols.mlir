// RUN: %tc-opt %s --split-input-file --legalize-symbols | %filecheck %s

// A kernel and shared memory with names that PTX cannot spell; the references follow.
// CHECK: llvm.mlir.global external @smem$2e$a(){{.*}}tc.symbol = "smem.a"
// CHECK: llvm.func @main$2e$1({{.*}}tc.symbol = "main.1"
// CHECK: llvm.mlir.addressof @smem$2e$a
gpu.module @kernels {
  llvm.mlir.global external @smem.a() {addr_space = 3 : i32} : !llvm.array<0 x i8>
  llvm.func @main.1(%x: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %s = llvm.mlir.addressof @smem.a : !llvm.ptr<3>
    llvm.return
  }
}

// -----

// A name that PTX can spell stays, one that was made legal, too.
// CHECK: llvm.func @main_1() attributes {nvvm.kernel} {
// CHECK: llvm.func @main$2e$1() attributes {{{.*}}tc.symbol = "main.1"
gpu.module @kernels {
  llvm.func @main_1() attributes {nvvm.kernel} {
    llvm.return
  }
  llvm.func @main$2e$1() attributes {nvvm.kernel, tc.symbol = "main.1"} {
    llvm.return
  }
}
