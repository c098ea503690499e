// __match_any_sync groups equal keys; the leader of each group adds once for all.
//
// class:      cuda
// launch:     grid=1, block=32
// arg keys:   (np.arange(32) * 3 % 7).astype(np.int32)
// arg sums:   np.zeros(7, np.int32)
// expect sums: np.bincount(keys, minlength=7)
// silicon:    clean
// isa:        clean

extern "C" __global__ void group(const int *keys, int *sums) {
  int k = keys[threadIdx.x];
  unsigned peers = __match_any_sync(0xffffffff, k);
  if (threadIdx.x == __ffs(peers) - 1) sums[k] = __popc(peers);
}
