// RUN: %tc-opt %s --expect-waits | %filecheck %s

// Only a branch around a block that asks until the answer is yes has weights; not one around another, and no loop has.
// CHECK: llvm.cond_br %{{.*}} weights([63, 1]), ^bb1, ^bb4
// CHECK: llvm.cond_br %{{.*}}, ^bb3, ^bb2
// CHECK: llvm.cond_br %{{.*}}, ^bb5, ^bb6
gpu.module @kernels {
  llvm.func @waits(%more: i1, %barrier: !llvm.ptr<3>, %phase: i32) {
    llvm.cond_br %more, ^wait, ^behind
  ^wait:
    llvm.br ^ask
  ^ask:
    %ready = nvvm.mbarrier.try_wait %barrier, %phase : !llvm.ptr<3>, i32 -> i1
    llvm.cond_br %ready, ^found, ^ask
  ^found:
    llvm.br ^behind
  ^behind:
    llvm.cond_br %more, ^store, ^end
  ^store:
    llvm.br ^end
  ^end:
    llvm.return
  }
  // CHECK: llvm.cond_br %{{.*}}, ^bb1, ^bb4
  // CHECK-NOT: weights
  llvm.func @waits_or_returns(%more: i1, %barrier: !llvm.ptr<3>, %phase: i32) {
    llvm.cond_br %more, ^wait, ^end
  ^wait:
    llvm.br ^ask
  ^ask:
    %ready = nvvm.mbarrier.try_wait %barrier, %phase : !llvm.ptr<3>, i32 -> i1
    llvm.cond_br %ready, ^found, ^ask
  ^found:
    llvm.call @waits(%more, %barrier, %phase) : (i1, !llvm.ptr<3>, i32) -> ()
    llvm.br ^end
  ^end:
    llvm.return
  }
}
