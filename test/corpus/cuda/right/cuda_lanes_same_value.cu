// All lanes store the same constant to a flag word, as compilers and libraries do.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(32, dtype=np.int32)
// arg found:  np.zeros(1, np.int32)
// expect found: 1
// silicon:    warning same-value-race
// isa:        warning same-value-race

extern "C" __global__ void any(const int *x, int *found) {
  if (x[threadIdx.x] % 5 == 0) *found = 1;
}
