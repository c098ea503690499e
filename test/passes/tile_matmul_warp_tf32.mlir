// tile-matmul-warp of f32 with M and N innermost: loads without bank conflicts need the swizzle of 32-byte atoms, which TMA has from Blackwell on.
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 target=sm_100a}' %s | %filecheck %s
// RUN: %tc-opt --tile-matmul-warp='{block-m=32 block-n=32 block-k=32 target=sm_90}' %s 2>&1 | %filecheck --check-prefix=HOPPER %s

// CHECK: "tc.make_tensor_map"(%arg0) {{.*}}swizzle = "128B_ATOM_32B"
// CHECK: !tc.smem<array<i64: 32, 32>, f32, "MN", "128B_ATOM_32B">
// HOPPER: remark: the copies are cp.async, not TMA: tiles of A, MN-major and of f32, need the swizzle 128B_ATOM_32B to be read without bank conflicts, which TMA of sm_90 does not have
// HOPPER-NOT: tc.tma_load
// HOPPER: !tc.staged<array<i64: 32, 32>, f32, "MN"
func.func @product(%a: tensor<64x32xf32>, %b: tensor<64x32xf32>) -> tensor<32x32xf32> {
  %c = "tc.matmul"(%a, %b) {a_layout = "km", b_layout = "kn"} : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<32x32xf32>
  return %c : tensor<32x32xf32>
}
