// Kernels without tensor cores for simulator_speed.py: 256 threads a CTA.

// out = 3 x + y
extern "C" __global__ void saxpy(const float *__restrict__ x, const float *__restrict__ y,
                                 float *__restrict__ out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 3.0f * x[i] + y[i];
}

// One CTA per row of n.
extern "C" __global__ void softmax(const float *__restrict__ x, float *__restrict__ out, int n) {
  __shared__ float part[8];
  const float *row = x + (size_t)blockIdx.x * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, row[i]);
  for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
  __syncthreads();
  for (int i = 0; i < 8; ++i) most = fmaxf(most, part[i]);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += exp2f((row[i] - most) * 1.44269504f);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; ++i) sum += part[i];
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    out[(size_t)blockIdx.x * n + i] = exp2f((row[i] - most) * 1.44269504f) / sum;
}

// Square, row-major; one CTA of 16 x 16 threads per tile of 16 x 16.
extern "C" __global__ void sgemm(const float *__restrict__ a, const float *__restrict__ b,
                                 float *__restrict__ out, int n) {
  __shared__ float as[16][16], bs[16][16];
  int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    as[y][x] = a[row * n + k + x];
    bs[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[y][i] * bs[i][x];
    __syncthreads();
  }
  out[row * n + column] = sum;
}
