// An argmax over blocks: value and index packed into 64 bits, one atomicMax.
//
// class:      cuda
// launch:     grid=2, block=64
// arg x:      ((np.arange(128) * 45) % 127).astype(np.uint32)
// arg best:   np.zeros(1, np.uint64)
// expect best: int(x.max()) << 32 | (127 - int(np.argmax(x)))
// silicon:    clean
// isa:        clean

extern "C" __global__ void argmax(const unsigned *x, unsigned long long *best) {
  unsigned i = blockIdx.x * 64 + threadIdx.x;
  atomicMax(best, (unsigned long long)x[i] << 32 | (127 - i));
}
