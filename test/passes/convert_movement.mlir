// TMA loads in both modes, their maps as kernel parameters.
// RUN: %tc-opt %s --convert-tc-to-nvvm | %filecheck %s

// CHECK: llvm.func @f(%[[X:[a-z0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant}, %[[W:[a-z0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<16 x i64>, nvvm.grid_constant})
// CHECK-SAME: {arg = 0 : i64, channels_per_pixel = 64 : i64, dims = array<i64: 64, 9, 8, 2>, dtype = "f16", element_strides = array<i64: 1, 2, 3, 1>, kind = "tensor_map", lower_corner = array<i64: -1, -2>, mode = "im2col", pixels_per_column = 128 : i64, strides = array<i64: 128, 1152, 9216>, swizzle = "128B", upper_corner = array<i64: -3, -4>}
// CHECK-SAME: {arg = 1 : i64, box = array<i64: 64, 16>, dims = array<i64: 64, 32>, dtype = "bf16", element_strides = array<i64: 1, 1>, kind = "tensor_map", mode = "tiled", strides = array<i64: 128>, swizzle = "128B"}
func.func @f(%x: memref<2x8x9x64xf16>, %w: memref<32x64xbf16>) attributes {tc.kernel, tc.grid = array<i64: 1, 1, 1>, tc.block = array<i64: 192, 1, 1>, tc.smem_bytes = 40960 : i64} {
  // CHECK-DAG: %[[C3:.*]] = arith.constant 3 : i32
  // CHECK-DAG: %[[C7:.*]] = arith.constant 7 : i32
  // CHECK-DAG: %[[M5:.*]] = arith.constant -5 : i32
  // CHECK-DAG: %[[ROW:.*]] = arith.constant 22528 : i32
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %m5 = arith.constant -5 : index
  %mx = "tc.make_tensor_map"(%x) {mode = "im2col", dims = array<i64: 64, 9, 8, 2>, strides = array<i64: 128, 1152, 9216>, box = array<i64: 64, 128>, element_strides = array<i64: 1, 2, 3, 1>, corners = array<i64: -1, -2, -3, -4>, swizzle = "128B"} : (memref<2x8x9x64xf16>) -> !tc.tensor_map
  %mw = "tc.make_tensor_map"(%w) {mode = "tiled", dims = array<i64: 64, 32>, strides = array<i64: 128>, box = array<i64: 64, 16>, element_strides = array<i64: 1, 1>, corners = array<i64>, swizzle = "128B"} : (memref<32x64xbf16>) -> !tc.tensor_map
  %full = "tc.mbarrier_init"() {arrivals = 1 : i64, offset = 36864 : i64} : () -> !tc.mbarrier
  %a = "tc.smem_tile"() {offset = 0 : i64} : () -> !tc.smem<array<i64: 128, 64>, f16, "K", "128B">
  %b = "tc.smem_tile"() {offset = 20480 : i64} : () -> !tc.smem<array<i64: 32, 64>, bf16, "K", "128B">
  "tc.role"() ({
  ^bb0(%me: index):
    // CHECK: %[[DX:.*]] = arith.trunci %[[C3]] : i32 to i16
    // CHECK: %[[DY:.*]] = arith.trunci %[[C7]] : i32 to i16
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[X]], %{{.*}}, box[%[[C3]], %[[M5]], %[[C7]], %[[C3]]] im2col[%[[DX]], %[[DY]]] {isCTAOnly = true, mode = #nvvm.tma_load_mode<im2col>} : !llvm.ptr<3>, !llvm.ptr
    "tc.tma_load"(%mx, %c3, %m5, %c7, %c3, %c3, %c7, %a, %full) {row = 0 : i64, nbytes = 16384 : i64, operandSegmentSizes = array<i32: 1, 4, 2, 1, 1>} : (!tc.tensor_map, index, index, index, index, index, index, !tc.smem<array<i64: 128, 64>, f16, "K", "128B">, !tc.mbarrier) -> ()
    // From row 16 of the tile: 20480 + 16 * 128.
    // CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[ROW]] : i32
    // CHECK: %[[TO:.*]] = llvm.inttoptr %[[AT]] : i32 to !llvm.ptr<3>
    // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %[[TO]], %[[W]], %{{.*}}, box[%[[C7]], %[[C3]]] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
    "tc.tma_load"(%mw, %c7, %c3, %b, %full) {row = 16 : i64, nbytes = 2048 : i64, operandSegmentSizes = array<i32: 1, 2, 0, 1, 1>} : (!tc.tensor_map, index, index, !tc.smem<array<i64: 32, 64>, bf16, "K", "128B">, !tc.mbarrier) -> ()
  }) {kind = "producer", warps = array<i64: 4>, threads = "one"} : () -> ()
  return
}
