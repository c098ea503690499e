// RUN: %tc-opt --split-input-file %s | %tc-opt --split-input-file - | %filecheck %s

// CHECK-LABEL: func.func @mbarrier_wait(
// CHECK: "tc.mbarrier_wait"({{%.*}}, {{%.*}}) : (!tc.mbarrier, index) -> ()
func.func @mbarrier_wait(%full: !tc.mbarrier, %phase: index) {
  "tc.mbarrier_wait"(%full, %phase) : (!tc.mbarrier, index) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @mbarrier_expect_tx(
// CHECK: "tc.mbarrier_expect_tx"({{%.*}}) {nbytes = 24576 : i64} : (!tc.mbarrier) -> ()
func.func @mbarrier_expect_tx(%full: !tc.mbarrier) {
  "tc.mbarrier_expect_tx"(%full) {nbytes = 24576 : i64} : (!tc.mbarrier) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @commit(
// CHECK: "tc.commit"({{%.*}}) : (!tc.mbarrier) -> ()
func.func @commit(%empty: !tc.mbarrier) {
  "tc.commit"(%empty) : (!tc.mbarrier) -> ()
  return
}

// -----

// CHECK-LABEL: func.func @fence(
// CHECK: "tc.fence"() {kind = "tcgen05.after"} : () -> ()
func.func @fence() {
  "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  return
}

// -----

// CHECK-LABEL: func.func @cta_barrier(
// CHECK: "tc.cta_barrier"() : () -> ()
func.func @cta_barrier() {
  "tc.cta_barrier"() : () -> ()
  return
}
