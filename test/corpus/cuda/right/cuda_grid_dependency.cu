// Programmatic dependent launch: the kernel waits for its predecessor and lets the next one start.
//
// class:      cuda
// launch:     grid=2, block=32, programmatic=True
// arg x:      np.arange(64, dtype=np.int32)
// arg y:      undefined(64, np.int32)
// expect y:   x + 1
// silicon:    clean
// isa:        clean

extern "C" __global__ void step(const int *x, int *y) {
  int i = blockIdx.x * 32 + threadIdx.x;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  int v = x[i];
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  y[i] = v + 1;
}
