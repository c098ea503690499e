// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @role(
// CHECK: "tc.role"() ({
// CHECK: "tc.commit"({{%.*}}) : (!tc.mbarrier) -> ()
// CHECK: }) {kind = "mma", threads = "one", warps = array<i64: 5>} : () -> ()
func.func @role(%done: !tc.mbarrier) {
  "tc.role"() ({
  ^bb0(%position: index):
    "tc.commit"(%done) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @one_thread(
// CHECK: "tc.one_thread"() ({
// CHECK: "tc.mbarrier_expect_tx"({{%.*}}) {nbytes = 64 : i64} : (!tc.mbarrier) -> ()
// CHECK: }) : () -> ()
func.func @one_thread(%full: !tc.mbarrier) {
  "tc.one_thread"() ({
    "tc.mbarrier_expect_tx"(%full) {nbytes = 64 : i64} : (!tc.mbarrier) -> ()
  }) : () -> ()
  return
}
