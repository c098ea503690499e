// The slot is the iteration number modulo the stages, so iterations must be numbered 0, 1, 2, …
// RUN: %tc-opt %s --split-input-file --multi-buffer --verify-diagnostics

func.func @steps_of_two() attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.target = "sm_100a"} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  // expected-error @+1 {{expected a loop from 0 in steps of 1 with constant end, got [0, 4, 2]}}
  scf.for %i = %c0 to %c4 step %c2 {
    %t = "tc.smem_tile"() : () -> !tc.smem<array<i64: 16, 16>, f16, "K", "32B">
  }
  return
}
