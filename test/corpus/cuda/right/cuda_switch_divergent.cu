// A switch whose arms hold loops of different lengths.
//
// class:      cuda
// launch:     grid=1, block=32
// arg y:      undefined(32, np.int32)
// expect y:   [[0, n, n * n, sum(range(n))][n % 4] for n in range(32)]
// silicon:    clean
// isa:        clean

extern "C" __global__ void arms(int *y) {
  int t = threadIdx.x, v = 0;
  switch (t % 4) {
    case 1: for (int i = 0; i < t; ++i) v += 1; break;
    case 2: v = t * t; break;
    case 3: for (int i = 0; i < t; ++i) v += i; break;
  }
  y[t] = v;
}
