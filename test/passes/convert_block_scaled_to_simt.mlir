// A block-scaled product on CUDA cores: dp4a on doubled e2m1, one fma a block, a butterfly; each
// chunk is loaded while the one before it is added.
// RUN: %tc-opt %s --convert-to-simt="{rows=1 warps=2}" | %filecheck %s
// RUN: %tc-opt %s --convert-to-simt={rows=4} | %filecheck %s --check-prefix=ROWS
// RUN: %exits 3 %tc-opt %s --convert-to-simt="{rows=9}" 2>&1 | %filecheck %s --check-prefix=R9

// One row a warp, two warps a CTA: 100 CTAs.
// CHECK: llvm.func @f({{.*}}nvvm.reqntid = array<i32: 64, 1, 1>, tc.grid = array<i64: 100, 1, 1>
// The first chunk: 16 bytes of each operand, two scales.
// CHECK-COUNT-2: llvm.load %{{.*}} -> i16
// CHECK: %[[LOOP:.*]]:11 = scf.for %{{.*}} to %c64_i32 step %{{.*}} iter_args(%[[TOTAL:.*]] = %cst
// Blocks of 16: four times four products with positive values of A, and with negative ones,
// exactly; their difference times both scales.
// CHECK: %[[PLUS:.*]] = llvm.inline_asm "dp4a{{.*}} %[[WHOLE:c1262485504.*]] : (i32
// CHECK-NEXT: %[[MINUS:.*]] = llvm.inline_asm "dp4a{{.*}} %[[WHOLE]] : (i32
// CHECK-COUNT-6: "dp4a.s32.s32
// CHECK-NOT: dp4a
// CHECK: %[[PART:.*]] = arith.subf
// CHECK: %[[FIRST:.*]] = llvm.intr.fma(%[[PART]], %{{.*}}, %[[TOTAL]])
// CHECK-COUNT-8: "dp4a.s32.s32
// CHECK: %[[SECOND:.*]] = llvm.intr.fma(%{{.*}}, %{{.*}}, %[[FIRST]])
// CHECK-NOT: dp4a
// The next chunk.
// CHECK-COUNT-2: llvm.load %{{.*}} -> i16
// CHECK: scf.yield %[[SECOND]],
// The last one.
// CHECK-COUNT-8: "dp4a.s32.s32
// CHECK: %[[THIRD:.*]] = llvm.intr.fma(%{{.*}}, %{{.*}}, %[[LOOP]]#0)
// CHECK-COUNT-8: "dp4a.s32.s32
// CHECK: %[[SUM:.*]] = llvm.intr.fma(%{{.*}}, %{{.*}}, %[[THIRD]])
// CHECK-NOT: dp4a
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %[[SUM]], %c16_i32
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %c8_i32
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %c4_i32
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %c2_i32
// CHECK: nvvm.shfl.sync bfly %{{.*}}, %c1_i32
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>

// Four rows a warp, four warps: 13 CTAs, four sums.
// ROWS: nvvm.reqntid = array<i32: 128, 1, 1>, tc.grid = array<i64: 13, 1, 1>
// ROWS: scf.for {{.*}} -> (f32, f32, f32, f32, i32,
// ROWS-COUNT-64: "dp4a.s32.s32
// ROWS-NOT: dp4a
// ROWS: scf.yield
// ROWS-COUNT-64: "dp4a.s32.s32
// ROWS-NOT: dp4a

// R9: error: expected rows of 1 to 8, got 9

func.func @f(%a: tensor<200x2048xf4E2M1FN>, %sa: tensor<200x128xf8E4M3FN>, %b: tensor<2048xf4E2M1FN>, %sb: tensor<128xf8E4M3FN>) -> tensor<200xf32> {
  %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, a_scale_layout = "row_major", b_scale_layout = "row_major", operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}
    : (tensor<200x2048xf4E2M1FN>, tensor<200x128xf8E4M3FN>, tensor<2048xf4E2M1FN>, tensor<128xf8E4M3FN>) -> tensor<200xf32>
  return %c : tensor<200xf32>
}
