// A 32x32 transpose through a padded tile, eight rows of threads.
//
// class:      cuda
// launch:     grid=1, block=(32, 8)
// arg x:      np.arange(1024, dtype=np.float32).reshape(32, 32)
// arg y:      undefined((32, 32), np.float32)
// expect y:   x.T
// silicon:    clean
// isa:        clean

extern "C" __global__ void transpose(const float *x, float *y) {
  __shared__ float tile[32][33];
  for (int i = threadIdx.y; i < 32; i += 8) tile[i][threadIdx.x] = x[i * 32 + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8) y[i * 32 + threadIdx.x] = tile[threadIdx.x][i];
}
