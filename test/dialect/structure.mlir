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
