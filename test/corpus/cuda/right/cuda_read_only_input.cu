// __ldg of an input that nobody writes, an output beside it in the same allocation.
//
// class:      cuda
// launch:     grid=1, block=32
// arg xy:     np.arange(64, dtype=np.int32)
// expect xy:  np.concatenate([np.arange(32), np.arange(32)[::-1]])
// silicon:    clean
// isa:        clean

extern "C" __global__ void mirror(int *xy) { xy[32 + threadIdx.x] = __ldg(xy + 31 - threadIdx.x); }
