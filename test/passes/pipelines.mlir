// RUN: %tc-opt --list-pipelines | %filecheck %s

// CHECK: conv-implicit-gemm: 2-D convolution as a matrix product
// CHECK-NEXT: accepts linalg.conv_2d_nhwc_hwcf
// CHECK: options n-tile: int = 0, stages: int = 0
// CHECK: conv-shift-reuse: 2-D convolution whose input goes to tensor memory once per filter row
// CHECK: options n-tile: int = 0, stages: int = 0, halo: str = mask, tiling: str = rows
// CHECK: matmul: matrix product
