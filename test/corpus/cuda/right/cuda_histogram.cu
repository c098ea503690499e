// A histogram: counters in shared memory by atomicAdd, merged into global ones by atomicAdd.
//
// class:      cuda
// launch:     grid=2, block=64
// arg x:      ((np.arange(256) * 7) % 13 % 8).astype(np.uint8)
// arg bins:   np.zeros(8, np.uint32)
// expect bins: np.bincount(x, minlength=8)
// silicon:    clean
// isa:        clean

extern "C" __global__ void histogram(const unsigned char *x, unsigned *bins) {
  __shared__ unsigned s[8];
  if (threadIdx.x < 8) s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 64 + threadIdx.x; i < 256; i += 128) atomicAdd(&s[x[i]], 1u);
  __syncthreads();
  if (threadIdx.x < 8) atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}
