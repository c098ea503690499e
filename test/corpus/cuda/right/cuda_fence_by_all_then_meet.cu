// Every thread fences what it stored, the block meets, and thread 0 takes the ticket without a fence.
// membar is fence.sc: the ticket that was read decides its order on both sides. PyTorch's reductions.
//
// class:      cuda
// launch:     grid=2, block=32
// arg part:   undefined((2, 32), np.int32)
// arg count:  np.zeros(1, np.uint32)
// arg out:    undefined(32, np.int32)
// expect part: np.arange(32) * [[1], [2]]
// expect count: 2
// expect out: np.arange(32) * 3
// silicon:    clean
// isa:        clean

extern "C" __global__ void reduce(int *part, unsigned *count, int *out) {
  __shared__ bool last;
  int t = threadIdx.x;
  part[blockIdx.x * 32 + t] = t * (blockIdx.x + 1);
  __threadfence();
  __syncthreads();
  if (t == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  out[t] = part[t] + part[32 + t];
}
