// The reduction of the CUDA samples: thread 0 stores its block's sum, fences and takes a ticket.
//
// class:      cuda
// launch:     grid=4, block=32
// arg x:      np.arange(128, dtype=np.int32)
// arg part:   undefined(4, np.int32)
// arg count:  np.zeros(1, np.uint32)
// arg out:    undefined(1, np.int32)
// expect part: x.reshape(4, 32).sum(1)
// expect count: 0
// expect out: x.sum()
// silicon:    clean
// isa:        clean

extern "C" __global__ void reduce(const int *x, volatile int *part, unsigned *count, int *out) {
  __shared__ bool last;
  int v = __reduce_add_sync(0xffffffff, x[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) {
    part[blockIdx.x] = v;
    __threadfence();
    last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  v = threadIdx.x < gridDim.x ? part[threadIdx.x] : 0;
  v = __reduce_add_sync(0xffffffff, v);
  if (threadIdx.x == 0) *out = v;
}
