// A 16x16x32 product by tiles of 8x8 in shared memory, four blocks.
//
// class:      cuda
// launch:     grid=(2, 2), block=(8, 8)
// arg a:      ints(16, 32).astype(np.float32)
// arg b:      ints(32, 16, 4).astype(np.float32)
// arg c:      undefined((16, 16), np.float32)
// expect c:   a @ b
// silicon:    clean
// isa:        clean

extern "C" __global__ void product(const float *a, const float *b, float *c) {
  __shared__ float x[8][8], y[8][8];
  int i = threadIdx.y, j = threadIdx.x, row = blockIdx.y * 8 + i, col = blockIdx.x * 8 + j;
  float sum = 0;
  for (int k = 0; k < 32; k += 8) {
    x[i][j] = a[row * 32 + k + j];
    y[i][j] = b[(k + i) * 16 + col];
    __syncthreads();
    for (int n = 0; n < 8; ++n) sum += x[i][n] * y[n][j];
    __syncthreads();
  }
  c[row * 16 + col] = sum;
}
