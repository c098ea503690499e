// Register shares: a branch per warpgroup whose share differs from the launch's 168.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// CHECK: llvm.func @f({{.*}} attributes {nvvm.kernel, nvvm.maxnreg = 168 : i32, nvvm.reqntid = array<i32: 384, 1, 1>
func.func @f(%out: memref<8xf32>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 384, 1, 1>, tc.smem_bytes = 0 : i64, tc.async} {
  // CHECK: %[[WARPGROUP:.*]] = arith.divui %{{.*}}, %{{.*}} : i32
  // CHECK: arith.cmpi eq, %[[WARPGROUP]], %c0_i32
  // CHECK: nvvm.setmaxregister increase 240
  // CHECK: arith.cmpi eq, %[[WARPGROUP]], %c2_i32
  // CHECK: nvvm.setmaxregister decrease 96
  "tc.warpgroup_registers"() {registers = array<i64: 240, 168, 96>} : () -> ()
  return
}
