// Memory that nobody wrote, by odd numbers; the even one behind each is right.
#include <cstdio>
#include <cstdlib>

constexpr int N = 128, BYTES = 4 * N;
__device__ int kept[N];
template <int CASE> __global__ void add(int *total) { atomicAdd(total, 1); }
template <int CASE> __global__ void look(const int *in) { kept[threadIdx.x] = in[threadIdx.x]; }
__global__ void write(int *out, int n) { if (threadIdx.x < n) out[threadIdx.x] = 1; }

static int *allocate() {
  int *p;
  cudaMalloc(&p, BYTES);
  return p;
}

int main() {
  int host[N] = {}, *p, *q;
  cudaMalloc(&p, 4), add<1><<<1, N>>>(p);
  cudaMalloc(&q, 4), cudaMemset(q, 0, 4), add<2><<<1, N>>>(q);

  p = allocate(), cudaMemset(p, 0, BYTES), look<4><<<1, N>>>(p);
  cudaFree(p), p = allocate(), look<3><<<1, N>>>(p);

  size_t pitch;
  cudaMallocPitch(&p, &pitch, 40, 2);
  cudaMemcpy2D(p, pitch, host, 40, 40, 2, cudaMemcpyHostToDevice);
  look<6><<<1, 10>>>(p), look<5><<<1, 11>>>(p);
  cudaMemset2D(p, pitch, 0, 44, 2), look<8><<<1, 11>>>(p + pitch / 4), look<7><<<1, 12>>>(p);

  cudaMallocManaged(&p, BYTES), cudaMallocManaged(&q, BYTES);
  srand(1);
  for (int i = 0; i < N; ++i) q[i] = rand();
  for (int i = 0; i < N - 8; ++i) p[i] = q[i];
  look<9><<<1, N>>>(p), look<10><<<1, N>>>(q);

  q = allocate(), p = allocate(), cudaMemcpy(q, p, BYTES, cudaMemcpyDeviceToDevice);
  look<11><<<1, N>>>(q);
  cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice), cudaMemcpy(q + 1, p + 1, BYTES - 8, cudaMemcpyDefault);
  look<12><<<1, N - 2>>>(q + 1), look<13><<<1, N - 1>>>(q);

  p = allocate(), write<<<1, N>>>(p, N / 2), look<15><<<1, N>>>(p);
  write<<<1, N>>>(p, N), look<14><<<1, N>>>(p);

  cudaMallocAsync(&p, BYTES, 0), look<17><<<1, N>>>(p);
  cudaMemsetAsync(p, 255, BYTES - 1, 0), look<18><<<1, N - 1>>>(p), look<19><<<1, N>>>(p);

  cudaHostAlloc(&p, BYTES, 0), look<21><<<1, N>>>(p);
  for (int i = 0; i < N; ++i) p[i] = i;
  look<20><<<1, N>>>(p);

  p = allocate(), cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost);  // the host may look at it
}
