// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.mbarrier_wait/parity
func.func @f(%bar: !tc.mbarrier) {
  %p = arith.constant 1 : index
  "tc.mbarrier_wait"(%bar, %p) : (!tc.mbarrier, index) -> ()
  return
}

// -----

// illegal: tc.mbarrier_wait/parity
func.func @f(%bar: !tc.mbarrier) {
  %p = arith.constant 2 : index
  // expected-error @+1 {{tc.mbarrier_wait: parity must be 0 or 1, got 2: it is the low bit of the phase number}}
  "tc.mbarrier_wait"(%bar, %p) : (!tc.mbarrier, index) -> ()
  return
}

// -----

// legal: tc.mbarrier_expect_tx/nbytes
func.func @f(%bar: !tc.mbarrier) {
  "tc.mbarrier_expect_tx"(%bar) {nbytes = 1048575 : i64} : (!tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.mbarrier_expect_tx/nbytes
func.func @f(%bar: !tc.mbarrier) {
  // expected-error @+1 {{tc.mbarrier_expect_tx: nbytes must be in [1, 1048575], got 1048576: the object counts transaction bytes in 20 bits; split the stage over two barriers}}
  "tc.mbarrier_expect_tx"(%bar) {nbytes = 1048576 : i64} : (!tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.fence/kind
func.func @f() {
  "tc.fence"() {kind = "proxy.async"} : () -> ()
  return
}

// -----

// illegal: tc.fence/kind
func.func @f() {
  // expected-error @+1 {{tc.fence: kind must be one of "tcgen05.before", "tcgen05.after", "proxy.async", "proxy.async.shared", "mbarrier_init", got "tcgen05"}}
  "tc.fence"() {kind = "tcgen05"} : () -> ()
  return
}

// -----

// legal: tc.first_warp_barrier/slot
func.func @f() {
  %slot = arith.constant 14 : index
  "tc.first_warp_barrier"(%slot) : (index) -> ()
  return
}

// -----

// illegal: tc.first_warp_barrier/slot
func.func @f() {
  %slot = arith.constant 15 : index
  // expected-error @+1 {{tc.first_warp_barrier: slot must be 0 to 14, got 15: a CTA has 16 barriers, of which tc.cta_barrier is 0}}
  "tc.first_warp_barrier"(%slot) : (index) -> ()
  return
}

// -----

// legal: tc.warps_barrier/warps
func.func @two_warps(%number: index) {
  "tc.warps_barrier"(%number) {warps = 2 : i64} : (index) -> ()
  return
}

// -----

// legal: tc.warps_barrier/number
func.func @last_barrier() {
  %number = arith.constant 14 : index
  "tc.warps_barrier"(%number) {warps = 2 : i64} : (index) -> ()
  return
}

// -----

// illegal: tc.warps_barrier/warps
func.func @one_warp(%number: index) {
  // expected-error @+1 {{tc.warps_barrier: warps must be at least 2, got 1: one warp meets by tc.warp_barrier}}
  "tc.warps_barrier"(%number) {warps = 1 : i64} : (index) -> ()
  return
}

// -----

// illegal: tc.warps_barrier/number
func.func @no_such_barrier() {
  %number = arith.constant 15 : index
  // expected-error @+1 {{tc.warps_barrier: number must be 0 to 14, got 15: a CTA has 16 barriers, of which tc.cta_barrier is 0}}
  "tc.warps_barrier"(%number) {warps = 2 : i64} : (index) -> ()
  return
}
