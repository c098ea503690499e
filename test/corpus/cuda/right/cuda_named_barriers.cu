// Two producer warps and two consumer warps with bar.arrive and bar.sync on two named barriers.
//
// class:      cuda
// launch:     grid=1, block=128
// arg x:      np.arange(256, dtype=np.int32)
// arg y:      undefined(256, np.int32)
// expect y:   x + 1
// silicon:    clean
// isa:        clean

extern "C" __global__ void stream(const int *x, int *y) {
  __shared__ int s[64];
  int t = threadIdx.x % 64;
  if (threadIdx.x < 64)
    for (int i = 0; i < 4; ++i) {
      if (i) asm volatile("bar.sync 2, 128;" ::: "memory");
      s[t] = x[i * 64 + t];
      asm volatile("bar.arrive 1, 128;" ::: "memory");
    }
  else
    for (int i = 0; i < 4; ++i) {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      y[i * 64 + t] = s[t] + 1;
      if (i < 3) asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
}
