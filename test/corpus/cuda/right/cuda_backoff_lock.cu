// A lock taken with __nanosleep and a growing pause between the attempts.
//
// class:      cuda
// launch:     grid=3, block=32
// arg lock:   np.zeros(1, np.uint32)
// arg log:    np.zeros(4, np.uint32)
// expect log: any
// silicon:    clean
// isa:        clean

extern "C" __global__ void enter(unsigned *lock, unsigned *log) {
  if (threadIdx.x == 0) {
    unsigned pause = 8;
    while (atomicExch(lock, 1u)) {
      __nanosleep(pause);
      if (pause < 256) pause *= 2;
    }
    __threadfence();
    log[1 + log[0]] = blockIdx.x;
    log[0] = log[0] + 1;
    __threadfence();
    atomicExch(lock, 0u);
  }
}
