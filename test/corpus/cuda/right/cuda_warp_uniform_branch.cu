// Warps of a block take different arms by their number and meet again; __syncwarp inside the arms.
//
// class:      cuda
// launch:     grid=1, block=96
// arg y:      undefined(96, np.int32)
// expect y:   np.concatenate([np.arange(32)[::-1], np.arange(32) * 2, np.arange(32) ^ 1])
// silicon:    clean
// isa:        clean

extern "C" __global__ void arms(int *y) {
  __shared__ int s[96];
  int w = threadIdx.x / 32, l = threadIdx.x % 32, *mine = s + 32 * w, v;
  mine[l] = l;
  if (w == 0) {
    __syncwarp();
    v = mine[31 - l];
  } else if (w == 1) {
    v = 2 * mine[l];
  } else {
    __syncwarp();
    v = mine[l ^ 1];
  }
  __syncthreads();
  y[threadIdx.x] = v;
}
