// The two halves of a warp write and read in two arms of a branch and meet in __syncwarp of each.
//
// class:      cuda
// launch:     grid=1, block=32
// arg y:      undefined(16, np.int32)
// expect y:   np.arange(16) * 3
// silicon:    clean
// isa:        clean

extern "C" __global__ void halves(int *y) {
  __shared__ int s[16];
  int t = threadIdx.x;
  if (t < 16) {
    s[t] = 3 * t;
    __syncwarp();
  } else {
    __syncwarp();
    y[t - 16] = s[t - 16];
  }
}
