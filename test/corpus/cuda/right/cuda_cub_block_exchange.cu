// cub::BlockExchange: from blocked to striped order and back.
//
// class:      cuda
// launch:     grid=1, block=32
// arg x:      np.arange(128, dtype=np.int32)
// arg y:      undefined(128, np.int32)
// expect y:   x.reshape(4, 32).T.ravel()
// silicon:    clean
// isa:        clean

#include <cub/block/block_exchange.cuh>
extern "C" __global__ void order(const int *x, int *y) {
  using Exchange = cub::BlockExchange<int, 32, 4>;
  __shared__ typename Exchange::TempStorage room;
  int v[4];
  for (int i = 0; i < 4; ++i) v[i] = x[threadIdx.x * 4 + i];
  Exchange(room).BlockedToStriped(v, v);
  for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = v[i];
}
