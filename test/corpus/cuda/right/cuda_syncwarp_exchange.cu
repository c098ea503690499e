// Lanes exchange words through shared memory with __syncwarp on both sides, four rounds.
//
// class:      cuda
// launch:     grid=1, block=64
// arg y:      undefined(64, np.int32)
// expect y:   (np.arange(64) % 32 + 4 * 3) % 32 + np.arange(64) // 32 * 32
// silicon:    clean
// isa:        clean

extern "C" __global__ void rotate(int *y) {
  __shared__ int s[64];
  int base = threadIdx.x & ~31, lane = threadIdx.x & 31, v = threadIdx.x;
  for (int i = 0; i < 4; ++i) {
    s[base + lane] = v;
    __syncwarp();
    v = s[base + (lane + 3) % 32];
    __syncwarp();
  }
  y[threadIdx.x] = v;
}
