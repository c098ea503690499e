// RUN: %tc-opt --split-input-file --verify-diagnostics %s

// Each rule next to a legal twin; test_rules.py asks for both of every rule.

// legal: tc.role/kind
func.func @f() {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  return
}

// -----

// illegal: tc.role/kind
func.func @f() {
  // expected-error @+1 {{tc.role: kind must be one of "producer", "mma", "epilogue", "epilogue_load", "consumer", got "loader"}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "loader", warps = array<i64: 4>, threads = "one"} : () -> ()
  return
}

// -----

// legal: tc.role/threads
func.func @f() {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.role/threads
func.func @f() {
  // expected-error @+1 {{tc.role: threads must be "one" or "warp", got "all"}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "all"} : () -> ()
  return
}

// -----

// legal: tc.role/warps
func.func @f() {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 28, 29, 30, 31>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.role/warps
func.func @f() {
  // expected-error @+1 {{tc.role: warps must be a non-empty array<i64> of distinct warp indices in [0, 31], got array<i64: 0, 0, 1, 2>}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 0, 1, 2>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.role/one-warp
func.func @f() {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// illegal: tc.role/one-warp
func.func @f() {
  // expected-error @+1 {{tc.role: threads = "one" takes exactly one warp, got warps [4, 5]: every listed warp would elect a thread and issue everything once more}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "mma", warps = array<i64: 4, 5>, threads = "one"} : () -> ()
  return
}

// -----

// legal: tc.role/body
func.func @f() {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.role/body
func.func @f() {
  // expected-error @+1 {{tc.role: the body must be one block with one index argument (the position in warps), got 1 blocks with arguments (i32)}}
  "tc.role"() ({
  ^bb0(%w: i32):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.role/issuer-one
func.func @f(%bar: !tc.mbarrier) {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.commit"(%bar) : (!tc.mbarrier) -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// illegal: tc.role/issuer-one
func.func @f(%bar: !tc.mbarrier) {
  // expected-error @+1 {{tc.role: tc.commit must be in a role of threads = "one": hardware executes it once per active thread}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.commit"(%bar) : (!tc.mbarrier) -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.role/issuer-warp
func.func @f() {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.tmem_wait"() {kind = "ld"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.role/issuer-warp
func.func @f() {
  // expected-error @+1 {{tc.role: tc.tmem_wait must be in a role of threads = "warp": it needs all 32 threads, converged}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.tmem_wait"() {kind = "ld"} : () -> ()
  }) {kind = "mma", warps = array<i64: 5>, threads = "one"} : () -> ()
  return
}

// -----

// legal: tc.role/whole-cta
func.func @f() {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  "tc.cta_barrier"() : () -> ()
  return
}

// -----

// illegal: tc.role/whole-cta
func.func @f() {
  // expected-error @+1 {{tc.role: tc.cta_barrier must stand outside roles: it is the whole CTA's, and a barrier that only some warps reach never completes}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.cta_barrier"() : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.role/nesting
func.func @f() {
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.fence"() {kind = "tcgen05.after"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// illegal: tc.role/nesting
func.func @f() {
  // expected-error @+1 {{tc.role: roles must not nest, got a tc.role inside: a warp has one role}}
  "tc.role"() ({
  ^bb0(%w: index):
    "tc.role"() ({
    ^bb0(%v: index):
    }) {kind = "epilogue", warps = array<i64: 0>, threads = "warp"} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}

// -----

// legal: tc.one_thread/body
func.func @f(%full: !tc.mbarrier) {
  "tc.one_thread"() ({
    "tc.mbarrier_expect_tx"(%full) {nbytes = 64 : i64} : (!tc.mbarrier) -> ()
  }) : () -> ()
  return
}

// -----

// illegal: tc.one_thread/body
func.func @f() {
  // expected-error @+1 {{tc.one_thread: the body must be one block of tc.mbarrier_expect_tx and tc.tma_load only, got tc.cta_barrier: one thread issues these, everything else is the work of all}}
  "tc.one_thread"() ({
    "tc.cta_barrier"() : () -> ()
  }) : () -> ()
  return
}

// -----

// legal: tc.warpgroup_registers/registers
func.func @f() {
  "tc.warpgroup_registers"() {registers = array<i64: 24, 256>} : () -> ()
  return
}

// -----

// illegal: tc.warpgroup_registers/registers
func.func @f() {
  // expected-error @+1 {{tc.warpgroup_registers: registers must be a non-empty array<i64> of counts that are a multiple of 8 in [24, 256], got array<i64: 232, 20>}}
  "tc.warpgroup_registers"() {registers = array<i64: 232, 20>} : () -> ()
  return
}
