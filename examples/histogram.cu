// A whole CUDA program: counts of bytes, in shared memory first. It is right or says where not.
//
//   python -m tcir.cuda examples/histogram.cu
//   python -m tcir.cuda --order-seeds 2 examples/histogram.cu 5000

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                               \
  do {                                                                            \
    cudaError_t error = (call);                                                   \
    if (error != cudaSuccess) {                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

__global__ void histogram(const unsigned char* data, int n, unsigned* counts) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[data[i]], 1);
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 20000;
  if (n < 1 || n > 40000) {
    fprintf(stderr, "expected 1 to 40000 bytes, got %s\n", argv[1]);
    return 2;
  }
  std::vector<unsigned char> data(n);
  std::vector<unsigned> expected(256), counts(256);
  for (int i = 0; i < n; ++i) ++expected[data[i] = (i * i / 7 + 3 * i) % 251];

  unsigned char* x;
  unsigned* y;
  CHECK(cudaMalloc(&x, n));
  CHECK(cudaMalloc(&y, 256 * sizeof(unsigned)));
  CHECK(cudaMemcpy(x, data.data(), n, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(y, 0, 256 * sizeof(unsigned)));
  histogram<<<8, 256>>>(x, n, y);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(counts.data(), y, 256 * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));

  for (int value = 0; value < 256; ++value)
    if (counts[value] != expected[value]) {
      printf("%d: %u times, expected %u\n", value, counts[value], expected[value]);
      return 1;
    }
  printf("%d bytes counted, right\n", n);
}
