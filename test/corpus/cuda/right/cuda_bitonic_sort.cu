// Bitonic sort of 64 keys in shared memory.
//
// class:      cuda
// launch:     grid=1, block=64
// arg keys:   ((np.arange(64) * 37 + 11) % 101).astype(np.int32)
// expect keys: np.sort(keys)
// silicon:    clean
// isa:        clean

extern "C" __global__ void sort(int *keys) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = keys[t];
  for (int k = 2; k <= 64; k *= 2)
    for (int j = k / 2; j; j /= 2) {
      __syncthreads();
      int o = t ^ j;
      if (o > t && (s[t] > s[o]) == ((t & k) == 0)) {
        int v = s[t];
        s[t] = s[o];
        s[o] = v;
      }
    }
  __syncthreads();
  keys[t] = s[t];
}
