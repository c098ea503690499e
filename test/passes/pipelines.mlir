// Every named pipeline: what it accepts, its options, and its passes in order.
// RUN: %tc-opt --list-pipelines | %filecheck %s

// CHECK: attention: scaled dot-product attention in one kernel
// CHECK: options rows: int = 0, keys: int = 0, ctas: int = 0, stages: int = 0, tau: float = -1.0
// CHECK: conv: 2-D convolution by the schedule that the cost model finds cheapest
// CHECK: options n-tile: int = 0, stages: int = 0
// CHECK: conv-implicit-gemm: 2-D convolution as a matrix product
// CHECK-NEXT: accepts linalg.conv_2d_nhwc_hwcf
// CHECK: options n-tile: int = 0, stages: int = 0, programmatic: bool = false, tf32: bool = true, persistent: bool = false, ctas: int = 0, scheduler: str = static
// CHECK: conv-shift-reuse: 2-D convolution whose input goes to tensor memory once per filter row
// CHECK: options n-tile: int = 0, stages: int = 0, programmatic: bool = false, tf32: bool = true, halo: str = mask, tiling: str = rows
// CHECK: conv-smem-offset: 2-D convolution whose taps are one tile in shared memory
// CHECK: options n-tile: int = 0, stages: int = 0
// CHECK: gemm: matrix product, batched or not, operands transposed or not, block-scaled or not. (also matmul)
// CHECK: options n-tile: int = 0, stages: int = 0
// CHECK: gemv-padded-n: block-scaled product with few columns
// CHECK: options pad-n: int = 16, schedule: str = auto, splits: int = 0, m-tile: int = 128, k-tile: int = 0, stages: int = 0, kind: str = ""
// CHECK: gemv-simt: block-scaled product on CUDA cores
// CHECK: options rows: int = 4, warps: int = 4, reorder: bool = false
// CHECK: layers: convolutions and matrix products in one function
// CHECK: options stages: int = 0
// CHECK: matmul-warp: matrix product of warps
// CHECK: options block-m: int = 0
// CHECK: simt-elementwise: elementwise ops, reductions and pooling on CUDA cores
// CHECK: targets sm_80, sm_90, sm_90a, sm_100a
