// Register shares: warpgroups of one share take a branch of their own, with their roles in it.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// CHECK: llvm.func @f({{.*}} attributes {nvvm.kernel, nvvm.maxnreg = 168 : i32, nvvm.reqntid = array<i32: 384, 1, 1>
// CHECK: %[[WARP:.*]] = arith.shrui %{{.*}}, %c5_i32
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[WARP]], %c4_i32
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: nvvm.setmaxregister increase 240
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[SECOND:.*]] = arith.cmpi ult, %[[WARP]], %c8_i32
// CHECK-NEXT: scf.if %[[SECOND]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: nvvm.setmaxregister decrease 96
// CHECK: arith.cmpi eq, %[[WARP]], %c9_i32
// CHECK: nvvm.elect.sync
// CHECK: }
// CHECK: llvm.return
func.func @f(%out: memref<8xf32>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 384, 1, 1>, tc.smem_bytes = 0 : i64, tc.async} {
  "tc.warpgroup_registers"() {registers = array<i64: 240, 168, 96>} : () -> ()
  "tc.role"() ({
  ^bb0(%w: index):
  }) {kind = "producer", warps = array<i64: 9>, threads = "one"} : () -> ()
  return
}
