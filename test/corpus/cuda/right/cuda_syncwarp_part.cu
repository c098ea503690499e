// Groups of eight lanes exchange words and meet by __syncwarp of their own mask.
//
// class:      cuda
// launch:     grid=1, block=32
// arg y:      undefined(32, np.int32)
// expect y:   np.arange(32) // 8 * 8 + 7 - np.arange(32) % 8
// silicon:    clean
// isa:        clean

extern "C" __global__ void groups(int *y) {
  __shared__ int s[32];
  int t = threadIdx.x;
  unsigned mask = 0xffu << (t & 24);
  s[t] = t;
  __syncwarp(mask);
  y[t] = s[t ^ 7];
}
