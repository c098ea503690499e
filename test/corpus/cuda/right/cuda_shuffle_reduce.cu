// A reduction by __shfl_down_sync in each warp and one more warp for the warps' sums.
//
// class:      cuda
// launch:     grid=1, block=128
// arg x:      np.arange(128, dtype=np.int32)
// arg out:    undefined(1, np.int32)
// expect out: x.sum()
// silicon:    clean
// isa:        clean

extern "C" __global__ void reduce(const int *x, int *out) {
  __shared__ int sums[32];
  int v = x[threadIdx.x], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  if (lane == 0) sums[warp] = v;
  __syncthreads();
  if (warp) return;
  v = lane < blockDim.x / 32 ? sums[lane] : 0;
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  if (lane == 0) *out = v;
}
