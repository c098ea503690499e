// RUN: %tc-opt --verify-tc-kernel --split-input-file --verify-diagnostics %s

// Pairs of CTAs that take over others, each rule next to a legal twin.

// legal: tc.kernel/launch-request-reuse
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  %e = "tc.mbarrier_init"() {arrivals = 2 : i64} : () -> !tc.mbarrier
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_wait"(%e, %c0) {cta_group = 2 : i64, leader} : (!tc.mbarrier, index) -> ()
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    "tc.launch_request"(%r, %c0, %f) {cta_group = 2 : i64, leader} : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
    "tc.mbarrier_wait"(%f, %c0) {cta_group = 2 : i64} : (!tc.mbarrier, index) -> ()
    %g, %cta = "tc.launch_query"(%r, %c0) : (!tc.launch_response_table, index) -> (i1, index)
    "tc.fence"() {kind = "proxy.async"} : () -> ()
    "tc.mbarrier_arrive"(%e) {cta_group = 2 : i64} : (!tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// legal: tc.kernel/launch-request-grid
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    "tc.launch_request"(%r, %c0, %f) {cta_group = 2 : i64, leader} : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/launch-request-grid
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    // expected-error @+1 {{tc.kernel: a kernel that takes over CTAs must have a grid along x, without clusters, or with cta_group = 2 on the request of a pair, got tc.grid [6, 1, 1], tc.cluster array<i64: 2, 1, 1> and cta_group = 1: tc.launch_query gives the number of one CTA along x, and a request takes over whole clusters}}
    "tc.launch_request"(%r, %c0, %f) : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// legal: tc.kernel/launch-request-leader
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    "tc.launch_request"(%r, %c0, %f) {cta_group = 2 : i64, leader} : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/launch-request-leader
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    // expected-error @+1 {{tc.kernel: tc.launch_request of cta_group = 2 must be the leader's (attribute leader, of the op or its role): both CTAs get its response, and issued by both it takes over two pairs}}
    "tc.launch_request"(%r, %c0, %f) {cta_group = 2 : i64} : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// The producer of the other CTA reads the response, too, and its request comes from another thread.
// illegal: tc.kernel/launch-request-reuse
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    "tc.launch_request"(%r, %c0, %f) {cta_group = 2 : i64, leader} : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
    "tc.mbarrier_wait"(%f, %c0) {cta_group = 2 : i64} : (!tc.mbarrier, index) -> ()
    // expected-error @+1 {{tc.kernel: the role "producer" reads a response and does not release it: it needs tc.fence "proxy.async" and tc.mbarrier_arrive behind tc.launch_query, on a barrier that the thread of the next tc.launch_request waits for; the request overwrites the response}}
    %g, %cta = "tc.launch_query"(%r, %c0) : (!tc.launch_response_table, index) -> (i1, index)
    "tc.fence"() {kind = "proxy.async"} : () -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// legal: tc.kernel/launch-response-bytes
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    "tc.launch_request"(%r, %c0, %f) {cta_group = 2 : i64, leader} : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/launch-response-bytes
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>, tc.cluster = array<i64: 2, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.cluster_barrier"() : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {leader, nbytes = 16 : i64} : (!tc.mbarrier) -> ()
    // expected-error @+1 {{tc.kernel: every CTA that gets the response must expect its 16 bytes on this barrier, got the leader's only: the wait for it ends too early, or never}}
    "tc.launch_request"(%r, %c0, %f) {cta_group = 2 : i64, leader} : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}

// -----

// illegal: tc.kernel/launch-response-bytes
func.func @f(%x: memref<8xf32>)
    attributes {tc.kernel, tc.async, tc.grid = array<i64: 6, 1, 1>,
        tc.block = array<i64: 64, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  %f = "tc.mbarrier_init"() {arrivals = 1 : i64} : () -> !tc.mbarrier
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.mbarrier_expect_tx"(%f) {nbytes = 8 : i64} : (!tc.mbarrier) -> ()
    // expected-error @+1 {{tc.kernel: every CTA that gets the response must expect its 16 bytes on this barrier, got 8: the wait for it ends too early, or never}}
    "tc.launch_request"(%r, %c0, %f) : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  }) {kind = "producer", threads = "one", warps = array<i64: 0>} : () -> ()
  return
}
