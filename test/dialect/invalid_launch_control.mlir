// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// legal: tc.launch_responses/count
func.func @f() {
  %r = "tc.launch_responses"() {count = 1 : i64} : () -> !tc.launch_response_table
  return
}

// -----

// illegal: tc.launch_responses/count
func.func @f() {
  // expected-error @+1 {{tc.launch_responses: count must be at least 1, got 0: a request needs a place for its response}}
  %r = "tc.launch_responses"() {count = 0 : i64} : () -> !tc.launch_response_table
  return
}

// -----

// legal: tc.launch_request/slot
func.func @f(%full: !tc.mbarrier) {
  %c1 = arith.constant 1 : index
  %r = "tc.launch_responses"() {count = 2 : i64} : () -> !tc.launch_response_table
  "tc.launch_request"(%r, %c1, %full) : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  return
}

// -----

// illegal: tc.launch_request/slot
func.func @f(%full: !tc.mbarrier) {
  %c2 = arith.constant 2 : index
  %r = "tc.launch_responses"() {count = 2 : i64} : () -> !tc.launch_response_table
  // expected-error @+1 {{tc.launch_request: slot must be in [0, 2), got 2}}
  "tc.launch_request"(%r, %c2, %full) : (!tc.launch_response_table, index, !tc.mbarrier) -> ()
  return
}

// -----

// legal: tc.launch_query/slot
func.func @f(%slot: index) {
  %r = "tc.launch_responses"() {count = 2 : i64} : () -> !tc.launch_response_table
  %g, %cta = "tc.launch_query"(%r, %slot) : (!tc.launch_response_table, index) -> (i1, index)
  return
}

// -----

// illegal: tc.launch_query/slot
func.func @f() {
  %c3 = arith.constant 3 : index
  %r = "tc.launch_responses"() {count = 2 : i64} : () -> !tc.launch_response_table
  // expected-error @+1 {{tc.launch_query: slot must be in [0, 2), got 3}}
  %g, %cta = "tc.launch_query"(%r, %c3) : (!tc.launch_response_table, index) -> (i1, index)
  return
}
