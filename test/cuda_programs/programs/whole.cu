// What host programs use: symbols, streams, events, several launches, 2D copies, printf, exit().
#include <cstdio>
#include <cstdlib>
#include <vector>

__constant__ float coefficients[2];
__device__ unsigned calls;

struct Span { const float* from; float* to; int count; };  // pointers in a struct by value

__global__ void line(Span span) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) calls += 1;
  if (i < span.count) span.to[i] = coefficients[0] * span.from[i] + coefficients[1];
}

template <typename T>
__global__ void say(T value) { printf("block %d: %d\n", blockIdx.x, value); }

int main(int argc, char** argv) {
  const int n = 500;
  std::vector<float> x(n), y(n);
  for (int i = 0; i < n; ++i) x[i] = i + 1;
  float line_of[2] = {3, -0.5f}, *device;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMalloc(&device, 2 * n * sizeof(float));
  cudaMemcpyAsync(device, x.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream);
  cudaMemcpyToSymbolAsync(coefficients, line_of, sizeof line_of, 0, cudaMemcpyHostToDevice, stream);
  line<<<4, 128, 0, stream>>>(Span{device, device + n, n});
  line<<<4, 128, 0, stream>>>(Span{device, device + n, n});
  cudaStreamSynchronize(stream);
  cudaMemcpy(y.data(), device + n, n * sizeof(float), cudaMemcpyDeviceToHost);
  unsigned seen = 0;
  cudaMemcpyFromSymbol(&seen, calls, sizeof seen);
  for (int i = 0; i < n; ++i)
    if (y[i] != 3 * x[i] - 0.5f) return printf("wrong at %d\n", i), 1;
  printf("before\n");
  say<<<2, 1>>>(7);
  printf("after, %u calls, %s, %d arguments, %s\n", seen, cudaGetErrorString(cudaGetLastError()),
         argc, argv[argc - 1]);
  exit(argc > 2 ? atoi(argv[2]) : 0);
}
