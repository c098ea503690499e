// A tensor map from the driver: a box of 8 rows and 32 columns to shared memory, stored transposed.
#include <cuda.h>
#include <cstdint>
#include <cstdio>
#include <vector>

__global__ void transpose(const __grid_constant__ CUtensorMap map, float* out) {
  __shared__ alignas(128) float tile[8][32];
  __shared__ alignas(8) uint64_t barrier;
  uint32_t bar = __cvta_generic_to_shared(&barrier), to = __cvta_generic_to_shared(tile);
  int column = 32 * blockIdx.x, row = 8 * blockIdx.y;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(bar));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(column), "r"(row), "r"(bar) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra L; }" ::"r"(bar) : "memory");
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    out[(column + i / 8) * 16 + row + i % 8] = tile[i % 8][i / 8];
}

int main() {
  const int rows = 16, columns = 64;
  std::vector<float> x(rows * columns), y(rows * columns);
  for (int i = 0; i < rows * columns; ++i) x[i] = i + 1;
  float *a, *b;
  cudaMalloc(&a, x.size() * 4);
  cudaMalloc(&b, x.size() * 4);
  cudaMemcpy(a, x.data(), x.size() * 4, cudaMemcpyHostToDevice);
  void* function;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  CUtensorMap map;
  cuuint64_t dims[2] = {columns, rows}, strides[1] = {columns * 4};
  cuuint32_t box[2] = {32, 8}, steps[2] = {1, 1};
  auto encode = (decltype(&cuTensorMapEncodeTiled))function;
  auto made = [&] {
    return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, a, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  box[0] = 257;
  printf("%d ", made());
  box[0] = 32;
  printf("%d\n", made());
  transpose<<<dim3(2, 2), 64>>>(map, b);
  cudaMemcpy(y.data(), b, y.size() * 4, cudaMemcpyDeviceToHost);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      if (y[c * rows + r] != x[r * columns + c]) return printf("wrong at %d, %d\n", r, c), 1;
  printf("right\n");
}
