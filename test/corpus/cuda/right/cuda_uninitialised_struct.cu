// A struct of which two fields are set is passed by value; the third is copied and ignored.
//
// class:      cuda
// launch:     grid=1, block=32
// arg y:      undefined(32, np.int32)
// expect y:   np.arange(32) * 2
// silicon:    clean
// isa:        clean

struct Item { int a, b, unused; };
__device__ __noinline__ int use(Item i) { return i.a + i.b; }
extern "C" __global__ void items(int *y) {
  Item i;
  i.a = i.b = threadIdx.x;
  y[threadIdx.x] = use(i);
}
