// Register tiles to a swizzled tile, 16 bytes at a time; one elected thread stores the box.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// The result is written through the map only: no pointer to it is a parameter.
// CHECK: tc.params = [{arg = 0 : i64,
// CHECK-SAME: kind = "tensor_map"
// CHECK-NOT: kind = "pointer"
func.func @f(%out: memref<128x256xf16>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 128, 1, 1>, tc.smem_bytes = 16384 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %v = arith.constant dense<1.0> : vector<32x16xf16>
  %map = "tc.make_tensor_map"(%out) {mode = "tiled", dims = array<i64: 256, 128>,
      strides = array<i64: 512>, box = array<i64: 64, 32>, element_strides = array<i64: 1, 1>,
      corners = array<i64>, swizzle = "128B"} : (memref<128x256xf16>) -> !tc.tensor_map
  %tiles = "tc.smem_tile"() {offset = 0 : i64} : () -> !tc.ring<4 : i64, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">>
  "tc.role"() ({
  ^bb0(%me: index):
    %tile = "tc.slot"(%tiles, %me) : (!tc.ring<4 : i64, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">>, index) -> !tc.smem<array<i64: 32, 64>, f16, "K", "128B">
    // Bits 7 and up of the row's address, XORed into bits 4 to 6 of the byte.
    // CHECK: arith.shrui %{{.*}}, %c3_i32 : i32
    // CHECK: %[[PHASE:.*]] = arith.andi %{{.*}}, %c112_i32 : i32
    // CHECK: arith.xori %{{.*}}, %[[PHASE]] : i32
    // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    // CHECK: arith.xori %{{.*}}, %[[PHASE]] : i32
    // CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
    "tc.store_shared"(%v, %tile, %c0, %c32) : (vector<32x16xf16>, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">, index, index) -> ()
    // The same places, read as two vectors of four words.
    // CHECK: %[[PHASE:.*]] = arith.andi %{{.*}}, %c112_i32 : i32
    // CHECK: arith.xori %{{.*}}, %[[PHASE]] : i32
    // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
    // CHECK: arith.xori %{{.*}}, %[[PHASE]] : i32
    // CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
    // CHECK: llvm.bitcast %{{.*}} : vector<8xi32> to vector<16xf16>
    %back = "tc.load_shared"(%tile, %c0, %c32) : (!tc.smem<array<i64: 32, 64>, f16, "K", "128B">, index, index) -> vector<32x16xf16>
    // CHECK: nvvm.fence.proxy
    "tc.fence"() {kind = "proxy.async"} : () -> ()
    // CHECK: nvvm.bar.warp.sync
    "tc.warp_barrier"() : () -> ()
    // CHECK: nvvm.elect.sync
    // CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %{{.*}}, box[%{{.*}}, %{{.*}}] : !llvm.ptr, <3>
    "tc.tma_store"(%map, %c32, %c0, %tile) {row = 0 : i64, operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">) -> ()
    // CHECK: llvm.inline_asm has_side_effects "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group [$0, {$1, $2}], [$3];", "l,r,r,r,~{memory}"
    "tc.tma_store"(%map, %c32, %c0, %tile) {row = 0 : i64, reduction = "max", operandSegmentSizes = array<i32: 1, 2, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 32, 64>, f16, "K", "128B">) -> ()
    // CHECK: nvvm.cp.async.bulk.commit.group
    "tc.bulk_commit"() : () -> ()
    // CHECK: nvvm.cp.async.bulk.wait_group 1 {read}
    "tc.bulk_wait"() {pending = 1 : i64, read = true} : () -> ()
  }) {kind = "epilogue", warps = array<i64: 0, 1, 2, 3>, threads = "warp"} : () -> ()
  return
}
